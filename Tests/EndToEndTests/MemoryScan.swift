import Foundation
import Glibc

/// The memory of another process, for who may look into it: root, and nobody else once a process has forbidden it.
enum MemoryScan {
    /// Names of the needles that are in the writable memory of `process`; nil when it lets nobody look.
    static func found(_ needles: [(name: String, bytes: [UInt8])], in process: Int32) throws -> [String]? {
        let memory = open("/proc/\(process)/mem", O_RDONLY | O_CLOEXEC)
        guard memory >= 0 else { return nil }
        defer { close(memory) }
        var found: Set<String> = []
        for region in try regions(of: process) {
            var bytes = [UInt8](repeating: 0, count: region.count)
            let count = pread(memory, &bytes, bytes.count, off_t(region.lowerBound))
            guard count > 0 else { continue }
            for needle in needles where holds(bytes, count, needle.bytes) { found.insert(needle.name) }
        }
        return found.sorted()
    }

    private static func holds(_ bytes: [UInt8], _ count: Int, _ needle: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { bytes in
            guard var place = bytes.baseAddress, let first = needle.first else { return false }
            let last = place + count - needle.count
            while place <= last, let next = memchr(place, Int32(first), last - place + 1) {
                if memcmp(next, needle, needle.count) == 0 { return true }
                place = UnsafeRawPointer(next) + 1
            }
            return false
        }
    }

    /// What can hold data: heap, stacks, and what was mapped for either.
    private static func regions(of process: Int32) throws -> [Range<Int>] {
        let maps = try String(contentsOfFile: "/proc/\(process)/maps", encoding: .utf8)
        return maps.split(separator: "\n").compactMap { line in
            let parts = line.split(separator: " ")
            guard parts.count >= 2, parts[1].hasPrefix("rw") else { return nil }
            let ends = parts[0].split(separator: "-").compactMap { Int($0, radix: 16) }
            // Stacks and arenas are reserved by far larger than they are; what was never touched reads as zeroes.
            guard ends.count == 2, ends[1] - ends[0] <= 256 * 1024 * 1024 else { return nil }
            return ends[0]..<ends[1]
        }
    }
}

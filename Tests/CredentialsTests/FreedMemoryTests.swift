import Credentials
import Foundation
import Glibc
import Testing

/// What is left of a key in memory when it has done its work.
@Suite struct FreedMemoryTests {
    /// In a process of its own: OpenSSL must not have been used before, and nothing else may have held the key.
    @Test func nothingOfAKeyIsLeftOnceItHasSigned() async {
        await #expect(processExitsWith: .success) {
            try #require(FreedMemory.eraseAfterOpenSSL())
            let directory = FileManager.default.temporaryDirectory.appending(path: "freed-\(UUID())")
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: directory) }
            let (pem, der) = (directory.appending(path: "key.pem").path, directory.appending(path: "key.der").path)
            try openssl(["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", pem])
            try openssl(["pkcs8", "-topk8", "-nocrypt", "-in", pem, "-outform", "DER", "-out", der])
            chmod(pem, 0o600)
            try sign(with: pem)
            // The private number stands at a fixed place (RFC 5208, RFC 5915); so does the second line of base64.
            let number = try Masked(file: der, range: 36..<68)
            let line = try Masked(file: pem, range: 28 + 65..<28 + 65 + 64)
            #expect(try !isInMemory(number))
            #expect(try !isInMemory(number.reversed()))
            #expect(try !isInMemory(line))
            // The search works: the same text is found while somebody holds it.
            let held = try [UInt8](Data(contentsOf: URL(filePath: pem)))
            #expect(try isInMemory(line))
            withExtendedLifetime(held) {}
        }
    }

    /// Once OpenSSL has allocated memory it is too late, and the caller is told.
    @Test func itComesBeforeEverythingElse() async {
        await #expect(processExitsWith: .success) {
            _ = try SigningKey.generated()
            #expect(!FreedMemory.eraseAfterOpenSSL())
        }
    }
}

@inline(never) private func sign(with path: String) throws {
    let key = try SigningKey(pem: try KeyFile(path: path, credentialsDirectory: nil).read())
    #expect(JSONWebToken.compact(keyID: "ABC123DEFG", teamID: "TEAM123456", issuedAt: 1, signedBy: key) != nil)
}

private func openssl(_ arguments: [String]) throws {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/openssl")
    process.arguments = arguments
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
}

/// Bytes to look for, kept so that they are not found where they are kept.
private struct Masked {
    private var bytes: [UInt8] = []
    private static let mask: UInt8 = 0x5A

    /// Reads byte by byte, so that no buffer ever holds two of them.
    init(file: String, range: Range<Int>) throws {
        let descriptor = open(file, O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        for place in range {
            var byte: UInt8 = 0
            try #require(pread(descriptor, &byte, 1, off_t(place)) == 1)
            bytes.append(byte ^ Self.mask)
        }
    }

    func reversed() -> Masked {
        var copy = self
        copy.bytes.reverse()
        return copy
    }

    /// Whether they are in `memory`, of which there are `count` bytes.
    func isIn(_ memory: UnsafePointer<UInt8>, count: Int) -> Bool {
        bytes.withUnsafeBufferPointer { bytes in
            guard count >= bytes.count else { return false }
            let first = Int32(bytes[0] ^ Self.mask)
            var start = 0
            while start <= count - bytes.count,
                let found = memchr(memory + start, first, count - bytes.count - start + 1)
            {
                start = UnsafePointer(found.assumingMemoryBound(to: UInt8.self)) - memory
                var length = 1
                while length < bytes.count, memory[start + length] == bytes[length] ^ Self.mask { length += 1 }
                if length == bytes.count { return true }
                start += 1
            }
            return false
        }
    }
}

/// Whether `needle` is in the heap, a stack or a global of this process.
private func isInMemory(_ needle: Masked) throws -> Bool {
    let memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
    defer { close(memory) }
    // Through one small buffer that is looked into and overwritten again, with an overlap as long as a needle can be.
    let (size, overlap) = (64 * 1024, 64)
    let buffer = UnsafeMutablePointer<UInt8>.allocate(capacity: size)
    defer { buffer.deallocate() }
    let own = Int(bitPattern: buffer)
    let maps = try String(contentsOfFile: "/proc/self/maps", encoding: .utf8)
    for line in maps.split(separator: "\n") {
        let parts = line.split(separator: " ")
        guard parts.count >= 2, parts[1].hasPrefix("rw") else { continue }
        let ends = parts[0].split(separator: "-").compactMap { Int($0, radix: 16) }
        var place = ends[0]
        while place < ends[1] {
            let count = pread(memory, buffer, min(size, ends[1] - place), off_t(place))
            guard count > overlap else { break }
            let isOwn = place < own + size && own < place + count
            if !isOwn, needle.isIn(buffer, count: count) { return true }
            place += count - overlap
        }
        memset(buffer, 0, size)
    }
    return false
}

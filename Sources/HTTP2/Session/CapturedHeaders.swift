import Glibc

/// Names of the response headers to keep, where a callback finds them without touching a String.
final class CapturedHeaders {
    let count: Int
    private let names: UnsafeMutablePointer<UnsafeMutableBufferPointer<UInt8>>

    init(_ list: [String]) {
        count = list.count
        names = .allocate(capacity: max(1, list.count))
        for (index, name) in list.enumerated() {
            let bytes = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: name.utf8.count)
            _ = bytes.initialize(from: name.utf8)
            (names + index).initialize(to: bytes)
        }
    }

    deinit {
        for index in 0..<count { names[index].deallocate() }
        names.deallocate()
    }

    /// The place of a name in the list.
    func index(of name: UnsafePointer<UInt8>, count length: Int) -> Int? {
        for index in 0..<count where names[index].count == length {
            if let start = names[index].baseAddress, memcmp(start, name, length) == 0 { return index }
        }
        return nil
    }
}

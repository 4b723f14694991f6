import COpenSSL

/// Bytes of a private key: owned by one holder, overwritten before the memory goes back, never printed.
package struct SecretBytes: ~Copyable {
    private let memory: UnsafeMutableRawBufferPointer
    /// Number of bytes.
    package let count: Int

    /// Makes room for at most `capacity` bytes and keeps as many as `fill` says that it wrote.
    package init<Failure: Error>(
        capacity: Int, fill: (UnsafeMutableRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, capacity), alignment: 1)
        do {
            let written = try fill(memory)
            precondition(written >= 0 && written <= memory.count, "a secret fits the room made for it")
            self.memory = memory
            count = written
        } catch {
            Self.erase(memory)
            throw error
        }
    }

    /// A copy of `text`, for keys that are public test data. The caller's own copy stays where it is.
    package init(copying text: String) {
        let utf8 = text.utf8
        self.init(capacity: utf8.count) { room in
            room.copyBytes(from: utf8)
            return utf8.count
        }
    }

    deinit {
        Self.erase(memory)
    }

    /// Lends the bytes for the length of the call.
    package borrowing func withUnsafeBytes<Result: ~Copyable, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(memory)[0..<count]))
    }

    /// `OPENSSL_cleanse` is a write that no optimiser removes.
    private static func erase(_ memory: UnsafeMutableRawBufferPointer) {
        OPENSSL_cleanse(memory.baseAddress, memory.count)
        memory.deallocate()
    }
}

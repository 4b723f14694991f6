import COpenSSL

/// SHA-256 (FIPS 180-4) in the form in which it fits into headers.
package enum SHA256 {
    /// Characters of a digest in base64url.
    package static let base64URLCount = 43

    /// Appends the base64url of the digest of `bytes`, 43 characters, to `text`.
    package static func appendBase64URL(of bytes: some Collection<UInt8>, to text: inout [UInt8]) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Int(SHA256_DIGEST_LENGTH)) { digest in
            digest.initialize(repeating: 0)
            let found: Void? = bytes.withContiguousStorageIfAvailable { buffer in
                _ = COpenSSL.SHA256(buffer.baseAddress, buffer.count, digest.baseAddress)
            }
            if found == nil {
                let copy = Array(bytes)
                _ = COpenSSL.SHA256(copy, copy.count, digest.baseAddress)
            }
            Base64URL.encode(digest, into: &text)
        }
    }
}

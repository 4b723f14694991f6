/// The label of a PEM block (RFC 7468): what a file says that it holds.
enum PEMLabel {
    /// The label of the first block in `pem`; nil when there is none. Labels are no secret; nothing behind the dashes
    /// is copied.
    static func first(in pem: borrowing SecretBytes) -> String? {
        pem.withUnsafeBytes { bytes -> String? in
            let marker = Array("-----BEGIN ".utf8)
            guard bytes.count > marker.count else { return nil }
            for start in 0..<(bytes.count - marker.count) {
                guard bytes[start..<start + marker.count].elementsEqual(marker) else { continue }
                let rest = bytes[(start + marker.count)...].prefix(64)
                return String(decoding: rest.prefix { $0 != UInt8(ascii: "-") }, as: UTF8.self)
            }
            return nil
        }
    }
}

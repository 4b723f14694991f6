import COpenSSL

/// The two forms of an ECDSA signature over P-256: ASN.1 DER as OpenSSL has it, and r‖s as JWS wants it (RFC 7518 3.4).
package enum ECDSASignature {
    /// Bytes of r and of s in the raw form.
    package static let integerSize = 32

    /// r‖s, each padded with zero bytes on the left to 32; nil when `der` is no such signature.
    ///
    /// DER drops leading zero bytes, about once in 128 signatures: without the padding those would be refused.
    package static func raw(fromDER der: [UInt8]) -> [UInt8]? {
        der.withUnsafeBufferPointer { buffer -> [UInt8]? in
            var position = buffer.baseAddress
            guard let signature = d2i_ECDSA_SIG(nil, &position, buffer.count) else { return nil }
            defer { ECDSA_SIG_free(signature) }
            guard position == buffer.baseAddress.map({ $0 + buffer.count }) else { return nil }
            var raw = [UInt8](repeating: 0, count: 2 * integerSize)
            let written = raw.withUnsafeMutableBufferPointer { room -> Bool in
                guard let start = room.baseAddress else { return false }
                let size = Int32(integerSize)
                return BN_bn2binpad(ECDSA_SIG_get0_r(signature), start, size) == size
                    && BN_bn2binpad(ECDSA_SIG_get0_s(signature), start + integerSize, size) == size
            }
            return written ? raw : nil
        }
    }

    /// The DER form of r‖s; nil when `raw` has not exactly 64 bytes.
    package static func der(fromRaw raw: [UInt8]) -> [UInt8]? {
        guard raw.count == 2 * integerSize, let signature = ECDSA_SIG_new() else { return nil }
        defer { ECDSA_SIG_free(signature) }
        let size = Int32(integerSize)
        let (r, s) = raw.withUnsafeBufferPointer { buffer in
            let start = buffer.baseAddress
            return (BN_bin2bn(start, size, nil), BN_bin2bn(start.map { $0 + integerSize }, size, nil))
        }
        guard ECDSA_SIG_set0(signature, r, s) == 1 else {
            BN_free(r)
            BN_free(s)
            return nil
        }
        let length = i2d_ECDSA_SIG(signature, nil)
        guard length > 0 else { return nil }
        var der = [UInt8](repeating: 0, count: Int(length))
        der.withUnsafeMutableBufferPointer { room in
            var position = room.baseAddress
            _ = i2d_ECDSA_SIG(signature, &position)
        }
        return der
    }
}

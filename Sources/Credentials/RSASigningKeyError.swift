/// Bytes were not accepted as the RSA key of a service account. Says what they are instead, never what they contain.
package enum RSASigningKeyError: Error, Equatable, Sendable {
    /// No PEM block is in it.
    case notPEM
    /// A private key that is protected by a passphrase.
    case encrypted
    /// A private key in an older form than PKCS#8 (`BEGIN RSA PRIVATE KEY`).
    case notPKCS8
    /// Another PEM block than a private key: a certificate, a public key.
    case notPrivate
    /// A private key of another algorithm.
    case notRSA
    /// An RSA key of fewer bits than are safe.
    case tooSmall(bits: Int)
    /// A PEM block of the right name whose content is damaged.
    case damaged

    /// What the key is, as it reads behind the name of the member that holds it.
    package var complaint: String {
        switch self {
        case .notPEM: "is no PEM block"
        case .encrypted: "is encrypted, and there is nobody to ask for the passphrase"
        case .notPKCS8: "is in an older form than PKCS#8"
        case .notPrivate: "is no private key"
        case .notRSA: "is no RSA key"
        case .tooSmall(let bits): "is an RSA key of \(bits) bits, fewer than \(RSASigningKey.bitsMin)"
        case .damaged: "is damaged or cut off"
        }
    }
}

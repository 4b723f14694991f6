/// Bytes were not accepted as a key to sign provider tokens with. Says what they are instead, never what they contain.
package enum SigningKeyError: Error, Equatable, Sendable, CustomStringConvertible {
    /// No PEM block is in it.
    case notPEM
    /// A private key that is protected by a passphrase.
    case encrypted
    /// A certificate: APNs certificates are another kind of credential.
    case certificate
    /// The public half only.
    case publicKey
    /// A private key in an older form than PKCS#8 (`BEGIN EC PRIVATE KEY`, `BEGIN RSA PRIVATE KEY`).
    case notPKCS8(label: String)
    /// An RSA key.
    case rsa
    /// An elliptic curve key of another curve than P-256.
    case otherCurve(name: String)
    /// A key of another algorithm altogether.
    case otherAlgorithm
    /// A PEM block of the right name whose content is damaged.
    case damaged

    package var description: String {
        let found =
            switch self {
            case .notPEM: "it holds no PEM block"
            case .encrypted: "its private key is encrypted, and there is nobody to ask for the passphrase"
            case .certificate: "it holds a certificate, not a token signing key"
            case .publicKey: "it holds a public key; the private one is needed"
            case .notPKCS8(let label): "it holds `\(label)`, an older form (openssl pkcs8 -topk8 -nocrypt converts it)"
            case .rsa: "it holds an RSA key"
            case .otherCurve(let name): "its key is on the curve \(name)"
            case .otherAlgorithm: "its key is of another algorithm"
            case .damaged: "its private key is damaged or cut off"
            }
        return "\(found); a P-256 key in PKCS#8 PEM (BEGIN PRIVATE KEY), as downloaded from the provider, is needed"
    }
}

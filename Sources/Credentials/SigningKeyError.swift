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

    /// What the bytes are, as it reads behind the name of the file that holds them.
    package var complaint: String {
        switch self {
        case .notPEM: "holds no PEM block"
        case .encrypted: "holds an encrypted key, and there is nobody to ask for the passphrase"
        case .certificate: "holds a certificate, not a token signing key"
        case .publicKey: "holds a public key, where the private one is needed"
        case .notPKCS8(let label): "holds `\(label)`, an older form (openssl pkcs8 -topk8 -nocrypt converts it)"
        case .rsa: "holds an RSA key"
        case .otherCurve(let name): "holds a key on the curve \(name)"
        case .otherAlgorithm: "holds a key of another algorithm"
        case .damaged: "holds a private key that is damaged or cut off"
        }
    }

    /// What is needed instead.
    package static let advice =
        "use the P-256 key in PKCS#8 PEM (BEGIN PRIVATE KEY) as it was downloaded from the provider"

    package var description: String {
        "the key file \(complaint); \(Self.advice)"
    }
}

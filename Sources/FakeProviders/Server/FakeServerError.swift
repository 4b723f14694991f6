/// A stand-in server could not be started.
package enum FakeServerError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The address is none, or cannot be listened on.
    case address(String, errno: Int32)
    /// A certificate or key could not be made or used.
    case certificate(String)
    /// A file could not be opened.
    case file(path: String, errno: Int32)
    /// A key to check provider tokens with is none.
    case providerKey(keyID: String)
    /// A file is no service account's, or its key is no RSA key.
    case serviceAccount(path: String)

    package var description: String {
        switch self {
        case .address(let text, let errno): "cannot listen on \(text) (errno \(errno))"
        case .certificate(let text): "certificate: \(text)"
        case .file(let path, let errno): "cannot open \(path) (errno \(errno))"
        case .providerKey(let keyID): "the public key of key id \(keyID) cannot be used"
        case .serviceAccount(let path):
            """
            \(path) is no service account file (JSON with client_email, private_key_id, project_id and an RSA \
            private_key)
            """
        }
    }
}

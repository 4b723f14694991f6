import Credentials
import HTTP2
import Operations

extension CommandFailure {
    /// A credential that was refused, in the words of the command line; `place` is the setting that names its file.
    init(_ error: CredentialError, place: String) {
        let (path, complaint, advice) =
            switch error {
            case .file(let error): (error.path, error.complaint, error.advice)
            case .key(let path, let error): (path, error.complaint, SigningKeyError.advice)
            case .signing(let path): (path, "holds a key that cannot sign", SigningKeyError.advice)
            }
        self.init(.configuration, what: "the key file \(path) \(complaint)", place: place, next: advice)
    }

    /// A service account that was refused; `place` is the setting that names its file.
    init(_ error: ServiceAccountError, place: String) {
        self.init(
            .configuration, what: "the service account file \(error.path) \(error.complaint)", place: place,
            next: error.advice)
    }

    /// A file of CAs that was refused.
    init(certificateFile error: HTTP2ConnectionError) {
        self.init(
            .configuration, what: "the CA certificates cannot be loaded: \(error.reason)", place: "POSTBELL_CA_FILE",
            next: "name a readable file of certificates in PEM form, or unset it to trust the system's alone")
    }
}

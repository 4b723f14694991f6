/// A service account file was not accepted. Says which file, what is wrong and what to do; never a byte of its content.
package struct ServiceAccountError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The closed list of what can be wrong.
    package enum Problem: Equatable, Sendable {
        /// The file itself was refused.
        case file(KeyFileError.Problem)
        /// Its content is no JSON object.
        case notJSON
        /// `type` is not `service_account`: another kind of Google credential.
        case otherType
        /// This member is missing, empty or no string.
        case missing(String)
        /// This member holds what cannot be right: a character that no such value has, or far too many.
        case malformed(String)
        /// `token_uri` is not Google's.
        case otherTokenURI
        /// `private_key` cannot be used.
        case key(RSASigningKeyError)
        /// OpenSSL could not sign with it.
        case signing
        /// After a reload: `project_id` is not the one that the worker was started with.
        case otherProject
    }

    /// The path as it was configured.
    package let path: String
    /// What is wrong.
    package let problem: Problem

    /// A refusal of the file at `path`.
    package init(path: String, _ problem: Problem) {
        self.path = path
        self.problem = problem
    }

    package var description: String {
        "service account file \(path) \(complaint); \(advice)"
    }

    /// What is wrong, as it reads behind the name of the file.
    package var complaint: String {
        switch problem {
        case .file(let problem): KeyFileError(path: path, problem: problem).complaint
        case .notJSON: "holds no JSON object"
        case .otherType: "is another kind of credential: its type is not service_account"
        case .missing(let member): "has no \(member)"
        case .malformed(let member): "has a \(member) that cannot be one"
        case .otherTokenURI: "names another token_uri than \(ServiceAccount.tokenURI)"
        case .key(let error): "has a private_key that \(error.complaint)"
        case .signing: "has a private_key that cannot sign"
        case .otherProject: "is of another project than the one this worker sends for"
        }
    }

    /// What to do about it.
    package var advice: String {
        switch problem {
        case .file(.empty), .file(.tooLarge), .notJSON, .otherType, .missing, .malformed, .key, .signing:
            "use the JSON file of a service account key as it was downloaded from the Google Cloud console"
        case .file(let problem): KeyFileError(path: path, problem: problem).advice
        case .otherTokenURI: "use a key of Google's own cloud; assertions are sent nowhere else"
        case .otherProject: "restart the worker to send for it"
        }
    }
}

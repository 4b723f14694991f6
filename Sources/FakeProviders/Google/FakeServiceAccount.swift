/// A Google service account that the stand-in for the token endpoint knows.
package struct FakeServiceAccount: Equatable, Sendable {
    /// `client_email`: the assertion's `iss`.
    package let clientEmail: String
    /// `private_key_id`: the assertion's `kid`.
    package let keyID: String
    /// `project_id`: the only project that access tokens of this account may send for.
    package let projectID: String
    /// The public half of its RSA key as PEM (`BEGIN PUBLIC KEY`).
    package let publicKeyPEM: String

    /// An account that is known to the service.
    package init(clientEmail: String, keyID: String, projectID: String, publicKeyPEM: String) {
        self.clientEmail = clientEmail
        self.keyID = keyID
        self.projectID = projectID
        self.publicKeyPEM = publicKeyPEM
    }
}

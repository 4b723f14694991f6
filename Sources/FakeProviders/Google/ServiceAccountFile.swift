/// Service account files (the JSON that Google's console hands out), made for tests and demos, and read.
package enum ServiceAccountFile {
    /// Google's token endpoint: what `token_uri` says, and what the assertion's `aud` must be.
    package static let tokenURI = "https://oauth2.googleapis.com/token"

    /// Makes an account with a new key, writes its file to `path` (for its owner alone), and answers what the token
    /// endpoint must know of it. Takes a tenth of a second.
    package static func make(
        at path: String, projectID: String, clientEmail: String? = nil, tokenURI: String = tokenURI
    ) throws(FakeServerError) -> FakeServiceAccount {
        let key = try RSAKey.generated()
        var random = SystemRandomNumberGenerator()
        let keyID = (0..<5).map { _ in hex(UInt32.random(in: 0...UInt32.max, using: &random)) }.joined()
        let email = clientEmail ?? "postbell@\(projectID).iam.gserviceaccount.com"
        let text = """
            {
              "type": "service_account",
              "project_id": \(JSONText.quoted(projectID)),
              "private_key_id": "\(keyID)",
              "private_key": \(JSONText.quoted(key.privatePEM())),
              "client_email": \(JSONText.quoted(email)),
              "client_id": "100000000000000000000",
              "auth_uri": "https://accounts.google.com/o/oauth2/auth",
              "token_uri": \(JSONText.quoted(tokenURI)),
              "universe_domain": "googleapis.com"
            }

            """
        try IdentityFiles.replace(path, with: Array(text.utf8), mode: 0o600)
        return FakeServiceAccount(
            clientEmail: email, keyID: keyID, projectID: projectID, publicKeyPEM: key.publicPEM())
    }

    /// What the token endpoint must know of the account whose file is at `path`.
    package static func account(at path: String) throws(FakeServerError) -> FakeServiceAccount {
        let text = try IdentityFiles.read(path)
        guard let file = JSONValue(Array(text.utf8)), let email = file["client_email"]?.text,
            let keyID = file["private_key_id"]?.text, let projectID = file["project_id"]?.text,
            let pem = file["private_key"]?.text, let key = RSAKey(pem: pem)
        else { throw .serviceAccount(path: path) }
        return FakeServiceAccount(
            clientEmail: email, keyID: keyID, projectID: projectID, publicKeyPEM: key.publicPEM())
    }

    private static func hex(_ value: UInt32) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }
}

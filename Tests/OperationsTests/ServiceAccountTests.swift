import FakeProviders
import Foundation
import Testing

/// What the program says about a service account that it cannot use, before it reaches for anything else.
@Suite struct ServiceAccountTests {
    /// Another text in the place of one of the file's, and what is said of it then.
    private static let mistakes: [(from: String, to: String, complaint: String)] = [
        ("{", "", "holds no JSON object"), ("}", "", "holds no JSON object"),
        (
            #""service_account""#, #""authorized_user""#,
            "is another kind of credential: its type is not service_account"
        ),
        (#""type""#, #""kind""#, "has no type"), (#""private_key":"#, #""some_key":"#, "has no private_key"),
        (#""project_id""#, #""project""#, "has no project_id"),
        (#""client_email""#, #""email""#, "has no client_email"),
        (#""private_key_id""#, #""key_id""#, "has no private_key_id"),
        (
            "https://oauth2.googleapis.com/token", "https://evil.example/token",
            "names another token_uri than https://oauth2"
        ),
        ("https://oauth2.googleapis.com/token", "https://oauth2.googleapis.com/token/", "names another token_uri than"),
        (#""token_uri""#, #""token""#, "has no token_uri"),
        ("BEGIN PRIVATE KEY", "BEGIN CERTIFICATE", "has a private_key that "),
        ("BEGIN PRIVATE KEY", "BEGIN ENCRYPTED PRIVATE KEY", "has a private_key that "),
        ("-----BEGIN PRIVATE KEY-----", "hush-hush", "has a private_key that "),
    ]

    private func account(_ change: (String) -> String = { $0 }) throws -> TemporaryFile {
        let file = try TemporaryFile("")
        _ = try ServiceAccountFile.make(at: file.path, projectID: "a-project")
        let text = try String(contentsOfFile: file.path, encoding: .utf8)
        try IdentityFiles.replace(file.path, with: Array(change(text).utf8), mode: 0o600)
        return file
    }

    private func environment(_ path: String) -> [String: String] {
        ["FCM_SERVICE_ACCOUNT_FILE": path, "DATABASE_URL": "postgresql://u@127.0.0.1:1/d"]
    }

    /// The one line that `dispatch` says, and the same from the doctor.
    private func refusal(_ path: String) throws -> String {
        let result = try Program.run(["dispatch"], environment: environment(path))
        #expect(result.status == 3, "\(result.errors)")
        let lines = result.lines.filter { !$0.hasPrefix("ts=") }
        #expect(lines.count == 1, "\(result.errors)")
        let examined = try Program.run(["check", "--offline"], environment: environment(path))
        #expect(examined.status == 3)
        let found = examined.output.split(separator: "\n").filter { $0.contains("  credential     ") }
        #expect(found.count == 1)
        let line = lines.first ?? ""
        #expect(found.first.map(String.init) == "fail  credential     " + line.replacing("postbell: ", with: ""))
        for text in [result.errors, examined.output] { #expect(!text.contains("MII") && !text.contains("hush-hush")) }
        return line
    }

    @Test(arguments: mistakes)
    func anAccountThatCannotBeUsedIsOneLine(from: String, to: String, complaint: String) throws {
        let file = try account { $0.replacing(from, with: to) }
        let line = try refusal(file.path)
        #expect(line.hasPrefix("postbell: the service account file \(file.path) \(complaint)"), "\(line)")
        #expect(line.contains("; FCM_SERVICE_ACCOUNT_FILE; "), "\(line)")
    }

    @Test func theFileIsHeldToTheRulesOfKeyFiles() throws {
        #expect(
            try refusal("/nowhere/fcm.json").contains("/nowhere/fcm.json does not exist; FCM_SERVICE_ACCOUNT_FILE; "))
        let file = try account()
        chmod(file.path, 0o644)
        #expect(try refusal(file.path).contains("has mode 0644, so others can read or change it"))
        let empty = try account { _ in "" }
        #expect(try refusal(empty.path).contains("is empty"))
    }

    @Test func aGoodAccountIsAcceptedAndItsProjectShown() throws {
        let file = try account()
        let examined = try Program.run(["check", "--offline"], environment: environment(file.path))
        #expect(examined.status == 0)
        #expect(
            examined.output.contains(
                "ok    credential     FCM credential default: service account "
                    + "postbell@a-project.iam.gserviceaccount.com of project a-project in \(file.path) (mode 0600, "
            ),
            "\(examined.output)")
        let worker = try RunningProgram(["dispatch"], environment: environment(file.path))
        #expect(worker.line(containing: "waiting for the database") != nil, "\(worker.lines)")
        worker.terminate()
        #expect(worker.end() == 0)
    }
}

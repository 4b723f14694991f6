import FakeProviders
import Foundation
import Support
import Testing

/// FCM's credentials in the real worker: beside APNs, several projects, and replaced while it runs.
@Suite(.serialized) struct FCMCredentialTests {
    @Test func oneWorkerServesBothProviders() async throws {
        try await GoogleStage.on { stage, google in
            try await stage.register("ada", token: "0a0b0c0d")
            try await stage.enqueue("ada", key: "ada")
            for number in 1...20 { try await google.enqueue("bob\(number)", on: stage) }
            let worker = try stage.startWorker(google.environment)
            try await stage.waitFor("ada", "dispatched")
            for number in 1...20 {
                try await stage.waitFor("bob\(number)", "dispatched")
                #expect(try await stage.outcomes("bob\(number)") == ["delivered"])
            }
            #expect(await google.fcm.requests.count == 20)
            #expect(
                Set(await google.fcm.requests.map(\.path)) == ["/v1/projects/\(GoogleStage.project)/messages:send"])
            #expect(await google.tokens.statistics.granted == 1)
            let report = try await stage.postbell("status", "--json", overriding: google.environment)
            #expect(report.output.contains(#""fcm/default""#), "\(report.output)")
            let check = try await stage.postbell("check", overriding: google.environment)
            #expect(check.status == 0, "\(check.output)")
            #expect(check.lines("ok    credential").contains { $0.contains("of project \(GoogleStage.project) in ") })
            #expect(check.lines("ok    endpoint").count == 3, "\(check.output)")
            #expect(check.lines("ok    routes").first?.contains("fcm/\(Stage.topic)") == true, "\(check.output)")
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    /// One role has Apple's secrets alone, the other Google's; the notification is for a device of each.
    @Test func twoRolesOfOneProviderEachDeliverOneNotification() async throws {
        try await GoogleStage.on { stage, google in
            try await stage.register("ada", token: "0a0b0c0d")
            try await stage.run(
                "SELECT postbell.device_register('ada', 'tablet', 'fcm', '\(Stage.topic)', 'token-of-ada:0123456789')")
            try await stage.enqueue("ada", key: "k1")
            let apple = try stage.startWorker(["POSTBELL_PROVIDERS": "apns"])
            try await eventually("Apple's part is delivered") { try await stage.outcomes("k1") == ["delivered"] }
            try await eventually("its lease is settled") {
                try await stage.texts("SELECT count(*) FROM postbell.leases") == ["0"]
            }
            #expect(try await stage.status("k1") == "pending", "the other part waits for its own role")
            var environment = google.environment
            environment["POSTBELL_PROVIDERS"] = "fcm"
            for name in ["APNS_KEY_FILE", "APNS_KEY_ID", "APNS_TEAM_ID", "APNS_TOPIC"] { environment[name] = "" }
            let other = try stage.startWorker(environment)
            try await stage.waitFor("k1", "dispatched")
            // And with both of them at work.
            try await stage.enqueue("ada", key: "k2")
            try await stage.waitFor("k2", "dispatched")
            for key in ["k1", "k2"] { #expect(try await stage.outcomes(key) == ["delivered", "delivered"]) }
            let senders = try await stage.texts("SELECT provider || ' ' || worker FROM postbell.ledger GROUP BY 1")
            #expect(senders.count == 2 && Set(senders.map { $0.split(separator: " ")[1] }).count == 2, "\(senders)")
            #expect(await stage.apns.requests.count == 2)
            #expect(await google.fcm.requests.count == 2)
            #expect(try await apple.stop() == 0)
            #expect(try await other.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    /// Each project has its own apps; an app of none is nobody's and holds up nobody.
    @Test func severalProjectsAreToldApartByTheirApps() async throws {
        try await GoogleStage.on(["tv-project"]) { stage, google in
            let settings = google.environment.merging([
                "POSTBELL_PROVIDERS": "fcm", "POSTBELL_FCM_CREDENTIALS": "tv", "FCM_APP": Stage.topic,
                "FCM_TV_APP": "com.example.tv",
                "FCM_TV_SERVICE_ACCOUNT_FILE": GoogleStage.file(of: "tv-project", in: stage),
            ]) { _, new in new }
            let worker = try stage.startWorker(settings)
            try await google.enqueue("phone", on: stage)
            try await google.enqueue("tv", app: "com.example.tv", on: stage)
            try await google.enqueue("radio", app: "com.example.radio", on: stage)
            try await stage.waitFor("phone", "dispatched")
            try await stage.waitFor("tv", "dispatched")
            try await eventually("the route is named") {
                worker.errors.split(separator: "\n").contains {
                    $0.contains("no worker serves") && $0.contains("app=com.example.radio")
                }
            }
            let paths = Set(await google.fcm.requests.map { "\($0.path) \($0.body.contains("token-of-tv"))" })
            #expect(
                paths == [
                    "/v1/projects/\(GoogleStage.project)/messages:send false",
                    "/v1/projects/tv-project/messages:send true",
                ])
            #expect(try await stage.status("radio") == "pending")
            #expect(await stage.apns.requests.isEmpty)
            let check = try await stage.postbell("check", overriding: settings)
            #expect(
                check.lines("warn  routes").first?.contains("add the app to FCM_APP if it is of that project") == true,
                "\(check.output)")
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    /// Something else in the place of the account's file, and what the log then says of it.
    private static let mistakes: [(from: String, to: String, complaint: String)] = [
        ("{", "", "holds no JSON object"),
        (#""service_account""#, #""authorized_user""#, "is another kind of credential"),
        (#""private_key""#, #""some_key""#, "has no private_key"),
        (
            "https://oauth2.googleapis.com/token", "https://evil.example/token",
            "names another token_uri than https://oauth2"
        ),
        (GoogleStage.project, "other-project", "is of another project than the one this worker sends for"),
    ]

    @Test(arguments: mistakes)
    func aBadAccountAtSIGHUPIsSaidAndTheOldOneGoesOnSending(from: String, to: String, complaint: String) async throws {
        try await GoogleStage.on { stage, google in
            let worker = try stage.startWorker(google.environment)
            try await google.enqueue("before", on: stage)
            try await stage.waitFor("before", "dispatched")
            let text = try String(contentsOfFile: google.file, encoding: .utf8)
            let bad = text.replacing(from, with: to, maxReplacements: from == "{" ? 1 : .max)
            try IdentityFiles.replace(google.file, with: Array(bad.utf8), mode: 0o600)
            worker.send(SIGHUP)
            try await eventually("the log says what is wrong") {
                worker.errors.split(separator: "\n").contains {
                    $0.contains("lane=fcm/default") && $0.contains("\(google.file) \(complaint)")
                }
            }
            try await google.enqueue("after", on: stage)
            try await stage.waitFor("after", "dispatched")
            #expect(await google.tokens.statistics.granted == 1)
            #expect(!worker.errors.contains("lane is paused"))
            // Put right again it is the same account, and a new one is taken.
            try IdentityFiles.replace(google.file, with: Array(text.utf8), mode: 0o600)
            worker.send(SIGHUP)
            try await eventually("it is the same again") {
                worker.errors.contains("credential was read again: it is the same\" lane=fcm/default")
            }
            let account = try ServiceAccountFile.make(at: google.file, projectID: GoogleStage.project)
            try await google.tokens.setAccounts([account])
            worker.send(SIGHUP)
            try await eventually("a token of the new key is there") { await google.tokens.statistics.granted == 2 }
            try await google.enqueue("renewed", on: stage)
            try await stage.waitFor("renewed", "dispatched")
            for name in ["before", "after", "renewed"] { #expect(try await stage.outcomes(name) == ["delivered"]) }
            let written = worker.errors
            for line in text.split(separator: "\\n").dropFirst(1) where line.count > 40 {
                #expect(!written.contains(line.prefix(40)), "a part of the key")
            }
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }
}

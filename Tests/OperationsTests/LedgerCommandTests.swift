import Foundation
import OutboxCore
import Support
import Testing

@testable import Operations

/// `postbell ledger`, on real servers with a real store.
@Suite(.serialized) struct LedgerCommandTests {
    private func keys(_ object: [String: Any]) -> [String] {
        (object["attempts"] as? [[String: Any]] ?? []).map { "\($0["dedupe_key"] ?? "-") \($0["outcome"] ?? "-")" }
    }

    @Test(arguments: DatabaseServer.allCases)
    func attemptsAreFoundByEachFilterAndShownOldestFirst(server: DatabaseServer) async throws {
        try await LookingScene.on(server) { scene in
            let phone = try await scene.device()
            try await scene.device("ben")
            try await scene.device(tenant: "other")
            try await scene.enqueue("a")
            try await scene.attempt(Outcome(.retry, status: 503, reason: "ServiceUnavailable"), again: .zero)
            try await scene.attempt(Outcome(.delivered, status: 200))
            let second = try await scene.enqueue("b", to: "ben")
            try await scene.attempt(Outcome(.unregistered, status: 410, reason: "Unregistered"))
            try await scene.run("SET postbell.tenant_id = 'other'")
            try await scene.enqueue("c", more: "tenant_id => 'other'")
            try await scene.run("RESET postbell.tenant_id")
            try await scene.attempt(Outcome(.delivered, status: 200))

            #expect(try keys(scene.json("ledger")) == ["a retry", "a delivered", "b unregistered", "c delivered"])
            let filters: [([String], [String])] = [
                (["--principal", "anna"], ["a retry", "a delivered", "c delivered"]),
                (["--principal", "anna", "--tenant", "default"], ["a retry", "a delivered"]),
                (["--tenant", "other"], ["c delivered"]),
                (["--kind", "note", "--outcome", "delivered"], ["a delivered", "c delivered"]),
                (["--kind", "other"], []), (["--principal", "nobody"], []),
                (["--device", phone], ["a retry", "a delivered"]),
                (["--device", phone, "--outcome", "retry"], ["a retry"]),
                (["--reason", "Unregistered"], ["b unregistered"]),
                (["--notification", second], ["b unregistered"]),
                (["--notification", second, "--principal", "anna"], []),
                (["--since", "1h"], ["a retry", "a delivered", "b unregistered", "c delivered"]),
                (["--since", "2000-01-01", "--until", "2000-01-02"], []), (["--until", "1h"], []),
                (["--principal", "ben", "--since", "1h"], ["b unregistered"]),
                (["--principal", "ben", "--until", "1h"], []),
            ]
            for (arguments, expected) in filters {
                let result = try Program.run(["ledger", "--json"] + arguments, environment: scene.environment())
                let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
                #expect(keys(object ?? [:]) == expected, "\(arguments) \(result.errors)")
            }
        }
    }

    @Test func everyFieldOfAnAttemptIsThere() async throws {
        try await LookingScene.on(.postgres15) { scene in
            let device = try await scene.device(name: "Anna's phone")
            let id = try await scene.enqueue("a")
            try await scene.attempt(Outcome(.retry, status: 503, reason: "ServiceUnavailable"), again: .seconds(60))
            let found = try scene.json("ledger")
            #expect(found["more"] as? Bool == false)
            #expect(found["limit"] as? Int == 50)
            let attempt = try #require((found["attempts"] as? [[String: Any]])?.first)
            let texts = attempt.compactMapValues { $0 as? String }
            #expect(texts["notification_id"] == id)
            #expect(texts["device_id"] == device)
            #expect(texts["device_name"] == "Anna's phone")
            #expect(texts["principal_id"] == "anna")
            #expect(texts["kind"] == "note")
            #expect(texts["provider"] == "apns")
            #expect(texts["environment"] == "production")
            #expect(texts["topic"] == "app.one")
            #expect(texts["reason"] == "ServiceUnavailable")
            #expect(texts["provider_id"] == id)
            #expect(texts["token_fingerprint"]?.count == 6)
            #expect(texts["worker"] == "tester/1")
            #expect(texts["retry_at"]?.hasSuffix("Z") == true)
            #expect(attempt["provider_status"] as? Int == 503)
            #expect(attempt["took_us"] as? Int == 42_000)
            #expect(attempt["attempt"] as? Int == 1)
            #expect(attempt["final"] as? Bool == false)
            #expect(attempt["late"] as? Bool == false)
            let text = try scene.postbell("ledger", "--notification", id).output
            #expect(text.contains("503 ServiceUnavailable"))
            #expect(text.contains("42 ms"))
            #expect(text.contains("again from "))
        }
    }

    @Test func whatIsLeftOutIsSaid() async throws {
        try await LookingScene.on(.postgres15) { scene in
            #expect(
                try scene.postbell("ledger").output
                    == "no attempt fits\nof the last 24 hours; --since looks further back\n")
            try await scene.device()
            for key in ["a", "b", "c"] { try await scene.enqueue(key) }
            try await scene.attempt(Outcome(.unknown, reason: "timeout"))
            let two = try scene.json("ledger", "--limit", "2")
            #expect(two["more"] as? Bool == true)
            #expect((two["attempts"] as? [Any])?.count == 2)
            #expect(try scene.json("ledger", "--limit", "3")["more"] as? Bool == false)
            for arguments in [["ledger", "--limit", "2"], ["ledger", "--limit", "2", "--principal", "anna"]] {
                let text = try Program.run(arguments, environment: scene.environment()).output
                #expect(text.contains("there are older ones: these are the newest 2; --limit shows more"))
                #expect(text.contains("unknown: the request was sent and its answer was lost"))
                #expect(text.contains("24 hours") == (arguments.count == 3))
            }
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func onlyReadersMayLook(server: DatabaseServer) async throws {
        try await LookingScene.on(server) { scene in
            let refused = try scene.postbell("ledger", as: LookingScene.producer)
            #expect(refused.status == 6)
            #expect(refused.output.isEmpty)
            #expect(refused.lines.count == 1)
            #expect(refused.errors.contains("(SQLSTATE 42501)"))
            #expect(refused.errors.contains("; use a login that is granted postbell_reader"))
        }
    }

    @Test func aNameCannotSteerTheTerminal() async throws {
        try await LookingScene.on(.postgres15) { scene in
            let name = "\u{1B}[31mred\nline\u{202E}"
            try await scene.device(name: name)
            try await scene.enqueue("a")
            try await scene.attempt(Outcome(.delivered, status: 200))
            let text = try scene.postbell("ledger").output
            #expect(text.contains(#"\u{1b}[31mred\u{a}line\u{202e}"#))
            #expect(!text.contains("\u{1B}"))
            #expect(text.split(separator: "\n").count == 3)
            let attempts = try scene.json("ledger")["attempts"] as? [[String: Any]]
            #expect(attempts?.first?["device_name"] as? String == name)
            #expect(try !scene.postbell("ledger", "--json").output.contains("\u{1B}"))
        }
    }

    @Test(arguments: [
        (["--device", "x"], #"--device "x" is no uuid"#), (["--outcome", "deliverd"], "did you mean delivered?"),
        (["--limit", "0"], #"--limit "0" is out of range"#),
        (["--since", "yesterday"], #"--since "yesterday" is no moment"#),
        (["--since", "9999999999d"], "is no moment"), (["--until", "2026-02-30"], "is no moment"),
        (["anna"], "is one argument too many"),
    ])
    func aWrongFilterIsOneLine(arguments: [String], message: String) throws {
        let result = try Program.run(["ledger"] + arguments)
        #expect(result.status == 2)
        #expect(result.lines.count == 1)
        #expect(result.errors.contains(message), "\(result.errors)")
    }

    @Test func anUnknownDeviceIsBad() async throws {
        try await LookingScene.on(.postgres15) { scene in
            let result = try scene.postbell("ledger", "--device", "00000000-0000-4000-8000-000000000000")
            #expect(result.status == 1)
            #expect(result.errors.contains("there is no device 00000000-0000-4000-8000-000000000000"))
        }
    }

    @Test func aDatabaseWithoutTheSchemaIsNamed() async throws {
        try await TemporaryDatabase.empty(on: .postgres15) { database in
            let result = try database.run("ledger")
            #expect(result.status == 5)
            #expect(result.errors.contains("; run `postbell migrate`"))
        }
    }
}

@Suite struct InstantArgumentTests {
    private static let option = LedgerFilter.sinceOption
    private static let now = Timestamp(microseconds: 1_796_005_025_000_000)

    @Test(arguments: [
        ("0s", "2026-11-30T02:17:05.000000Z"), ("90m", "2026-11-30T00:47:05.000000Z"),
        ("1d", "2026-11-29T02:17:05.000000Z"), ("2026-11-30", "2026-11-30T00:00:00.000000Z"),
        ("2026-11-30 02:17", "2026-11-30T02:17:00.000000Z"), ("2026-11-30T02:17:05Z", "2026-11-30T02:17:05.000000Z"),
        ("2024-02-29T23:59:59", "2024-02-29T23:59:59.000000Z"), ("1970-01-01", "1970-01-01T00:00:00.000000Z"),
    ])
    func moments(text: String, expected: String) throws {
        let instant = try InstantArgument(text, option: Self.option).instant(from: Self.now)
        #expect(TimeText.precise(instant) == expected)
    }

    @Test(arguments: [
        "", "5", "now", "2026-11-31", "2026-13-01", "2026-1-1", "2026-11-30T", "2026-11-30T25:00", "2026-11-30T1:00",
        "2026-11-30Z", "36501d", "2026-11-30T10:00+02", "1969-12-31", "２０２６-11-30",
    ])
    func whatIsNoMomentIsRefused(text: String) {
        #expect(throws: CommandFailure.self) { _ = try InstantArgument(text, option: Self.option) }
    }
}

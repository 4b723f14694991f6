import Support
import Testing

@testable import OutboxPostgres

/// Every kind of the shipped catalogs from its insert to the bytes on the wire, for both providers, loud and silent.
@Suite(.timeLimit(.minutes(5)))
struct CatalogWireTests {
    private static let everywhere = DatabaseServer.allCases.flatMap { server in
        ShippedCatalog.allCases.map { (server, $0) }
    }

    /// A database with the catalog; what `Outbox` brings for other tests is gone.
    private static func with(
        _ catalog: ShippedCatalog, on server: DatabaseServer, _ body: (Outbox) async throws -> Void
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(
                "SELECT postbell.drop_kind('note'); SELECT postbell.set_instance('default', 'house-1')")
            try await outbox.run(try catalog.catalog())
            try await body(outbox)
        }
    }

    private static func push(
        _ sample: CatalogSample, isSilent: Bool, in outbox: Outbox, beforeClaim: () async throws -> Void = {}
    ) async throws -> Wire {
        func quoted(_ text: String?) -> String { text.map { "'\($0)'" } ?? "NULL" }
        // A key stands once: forms of a sample are notifications of their own.
        try await outbox.run("UPDATE postbell.outbox SET dedupe_key = id::text")
        return try await Wire.of(
            sample.kind,
            [
                "payload": quoted(sample.payload), "thread": quoted(sample.thread), "subject": quoted(sample.subject),
                "badge": sample.badge.map(String.init) ?? "NULL", "silent": "\(isSilent)",
            ], key: quoted(sample.key), in: outbox, beforeClaim: beforeClaim)
    }

    @Test(arguments: everywhere)
    func `Every kind is on the wire, loud and silent, what its golden file says`(
        server: DatabaseServer, catalog: ShippedCatalog
    ) async throws {
        try await Self.with(catalog, on: server) { outbox in
            let samples = CatalogSample.all(of: catalog)
            let kinds = try await outbox.texts("SELECT name FROM postbell.kinds WHERE current ORDER BY name")
            #expect(Set(kinds) == Set(samples.map(\.kind) + ["test"]), "which comes with the schema")
            var files: Set<String> = []
            for sample in samples {
                for form in ["loud", "silent"] {
                    let wire = try await Self.push(sample, isSilent: form == "silent", in: outbox)
                    let golden = GoldenPush(wire, of: sample, form, in: catalog)
                    try golden.check()
                    files.insert(golden.name)
                }
            }
            #expect(try GoldenPush.files(of: catalog) == files)
        }
    }

    @Test(arguments: everywhere)
    func `A catalog applied again changes nothing, and its kinds are as many as its seed has`(
        server: DatabaseServer, catalog: ShippedCatalog
    ) async throws {
        try await Self.with(catalog, on: server) { outbox in
            let state = """
                SELECT string_agg(concat_ws(' ', k.name, k.kind_no, k.revision, k.created_at), ',' ORDER BY k.kind_no)
                    || postbell.mapping()::text || coalesce((SELECT max(installed_at) FROM postbell.codes)::text, '')
                FROM postbell.kinds k
                """
            let before = try await outbox.value(state)
            try await outbox.run(try catalog.catalog())
            #expect(try await outbox.value(state) == before)
            // With `test`, which comes with the schema; the team chat's has none of its own.
            let counts: [ShippedCatalog: String] = [.agentPlatform: "10", .teamChat: "10", .pluginHub: "2"]
            let count = try await outbox.value("SELECT count(*) FROM postbell.kinds WHERE current AND enabled")
            #expect(count == counts[catalog])
        }
    }

    /// Another catalog is applied between insert and claim: other containers, other revisions.
    @Test(arguments: ShippedCatalog.allCases)
    func `What was enqueued before its kind changed is sent as it was declared then`(
        catalog: ShippedCatalog
    ) async throws {
        try await Self.with(catalog, on: .postgres15) { outbox in
            var changed = try catalog.catalog()
            for container in ["veetbot", "b", "officer"] {
                changed.replace("\"container\": \"\(container)\"", with: "\"container\": \"changed\"")
            }
            changed.replace("\"form\": \"badge\",", with: "\"title\": \"CHANGED\",")
            for sample in CatalogSample.all(of: catalog) {
                try await outbox.run(try catalog.catalog())
                let wire = try await Self.push(
                    sample, isSilent: false, in: outbox, beforeClaim: { try await outbox.run(changed) })
                try GoldenPush(wire, of: sample, "loud", in: catalog).check()
            }
            let revisions = try await outbox.value("SELECT max(revision) FROM postbell.kinds")
            #expect(try #require(Int(revisions)) > 2)
        }
    }

    /// What a push to each provider may carry beside the alert, and nothing else: names of the apps' dictionaries, and
    /// Postbell's own on Android.
    @Test func `A push of the team chat has the keys of its list, and each value is an id, a number or a fixed key`()
        async throws
    {
        try await Self.with(.teamChat, on: .postgres15) { outbox in
            for sample in CatalogSample.all(of: .teamChat) {
                let wire = try await Self.push(sample, isSilent: false, in: outbox)
                let (apple, google) = (try JSONShape(wire.apns), try JSONShape(wire.fcm))
                #expect(apple.keys.isSubset(of: Self.appleKeys), "\(sample.name): \(apple.keys)")
                #expect(google.keys.isSubset(of: Self.googleKeys), "\(sample.name): \(google.keys)")
                for text in apple.texts.union(google.texts) {
                    let isFixed = Self.fixed.contains(text) || text.hasPrefix("PUSH_") || text == sample.kind
                    let isCategory = text == sample.kind.uppercased()
                    let isValue = text.allSatisfy { "0123456789abcdef-,s".contains($0) }
                    #expect(isFixed || isCategory || isValue || text == Self.token, "\(sample.name): \(text)")
                }
                #expect(wire.apns.utf8.count < 1000 && wire.fcm.utf8.count < 1000)
            }
        }
    }

    private static let token = "cXyzAbcdEFGhijKLmnopqr:APA91b" + String(repeating: "Gh-7_x", count: 22)
    private static let fixed: Set<String> = ["house-1", "ID", "default", "active", "HIGH", "NORMAL"]
    private static let appleKeys: Set<String> = [
        "aps", "aps.alert", "aps.alert.title-loc-key", "aps.alert.loc-key", "aps.badge", "aps.sound", "aps.thread-id",
        "aps.category", "aps.interruption-level", "aps.mutable-content", "b", "b.v", "b.nid", "b.k", "b.i", "b.t",
        "b.m",
    ]
    private static let googleKeys: Set<String> = Set(
        ["message", "message.token", "message.android", "message.android.priority", "message.android.ttl"]
            + ["", ".v", ".nid", ".k", ".i", ".t", ".m", ".badge", ".quiet", ".cleared"].map { "message.data" + $0 })
}

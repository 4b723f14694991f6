import Foundation
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// How large the notifications of a kind can get: what `define_kind` says of it, against the bytes of the encoders.
@Suite(.timeLimit(.minutes(5)))
struct KindSizeTests {
    /// A payload with the longest value of each key that a kind declares, and of an enum its longest word.
    private static func longest(_ kind: String) -> String {
        """
        (SELECT jsonb_object_agg(k.key, CASE k.value ->> 'type'
            WHEN 'uuid' THEN to_jsonb(gen_random_uuid())
            WHEN 'int' THEN '-999999999999999999'
            WHEN 'bool' THEN 'false'
            WHEN 'slug' THEN to_jsonb(repeat('s', 100))
            WHEN 'code' THEN to_jsonb(rpad(coalesce(k.value ->> 'namespace', 'a') || ':', 200, 'c'))
            WHEN 'timestamp' THEN to_jsonb('2026-11-30T08:30:00.123456789+01:00'::text)
            WHEN 'text' THEN to_jsonb(repeat('🛎', (k.value ->> 'length')::int))
            WHEN 'enum' THEN (
                SELECT v FROM jsonb_array_elements(k.value -> 'values') v ORDER BY length(v::text) DESC LIMIT 1)
            WHEN 'uuids' THEN (
                SELECT jsonb_agg(gen_random_uuid()) FROM generate_series(1, (k.value ->> 'length')::int))
        END)
        FROM postbell.kinds d CROSS JOIN LATERAL jsonb_each(d.payload_keys) k
        WHERE d.name = '\(kind)' AND d.current)
        """
    }

    /// What a kind's largest notification has: the body for APNs, and the keys and values of `data` for FCM.
    private static func largest(_ kind: String, in outbox: Outbox) async throws -> (apns: Int, fcm: Int) {
        // jsonb writes a space after each comma of a list, which producers need not.
        let wire = try await Wire.of(
            kind,
            [
                "payload": "replace(\(longest(kind))::text, ', ', ',')", "thread": "repeat('t', 200)",
                "subject": "repeat('s', 200)", "collapse_key": "repeat('c', 200)", "badge": "2147483647",
            ], in: outbox)
        return (wire.apns.utf8.count + 34 * wire.apns.matches(of: #/"ID"/#).count, try dataCount(wire.fcm))
    }

    private static func dataCount(_ body: String) throws -> Int {
        let object = try JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any]
        let message = try #require(object?["message"] as? [String: Any], "\(body)")
        let data = try #require(message["data"] as? [String: String])
        return data.reduce(0) { $0 + $1.key.utf8.count + ($1.value == "ID" ? 36 : $1.value.utf8.count) }
    }

    private static func said(_ kind: String, in outbox: Outbox) async throws -> (apns: Int, fcm: Int) {
        let texts = try await outbox.value(
            """
            SELECT b.apns || ' ' || b.fcm
            FROM postbell.kinds k CROSS JOIN LATERAL postbell.largest_bytes(k) b WHERE k.name = '\(kind)' AND k.current
            """)
        let numbers = texts.split(separator: " ").compactMap { Int($0) }
        return (numbers[0], numbers[1])
    }

    /// Kinds with everything that a kind can have.
    private static let full = [
        #"""
        'texts', 'template', '{"id": "uuid!", "n": "int?", "b": "bool!", "s": "slug?", "t": "timestamp?",
            "w": "text(40)?", "e": "enum(a,bb,ccc)!", "c": "code?", "l": "uuids(3)?", "title": "slug?"}',
        '{"title": {"by": "e", "cases": {"a": "short"}, "else": "{{ü}} \"{w}\" {s} {n} {b}"},
          "subtitle": {"by": "n", "absent": "a very long text", "else": "{s}: {e} {t} {c}"},
          "body": "{id} {w}", "visible": {"w": "?"}, "labels": {"s": {"*": "ein längeres \"Wort\""}},
          "container": "container"}',
        category => 'CATEGORY', sound => 'sound.caf', interruption_level => 'time-sensitive', mutable_content => true
        """#,
        #"""
        'members', 'template', '{"id": "uuid!", "n": "int?", "w": "text(40)?", "l": "uuids(3)?"}',
        '{"title": "x", "visible": {"w": "?"}, "data": {"v": 1, "c": "constant", "title": "{$title}", "nid": "{$id}",
          "th": "{$thread}", "q": "{$silent}", "badge": "{$badge}", "id": "{id}", "list": "{l}", "w": "{w}"}}',
        sound => 'default', push_type => 'voip'
        """#,
        #"""
        'keys', 'localized', '{"id": "uuid!", "n": "int!", "s": "slug!"}',
        '{"title": "TITLE(s)", "subtitle": "SUBTITLE(id,n,s)", "body": "BODY(n,n)"}', mutable_content => true
        """#,
        #"""
        'exact', 'localized', '{"s": "slug!"}', '{"body": "BODY",
          "fcm": {"title": "{$body}", "i": "{$instance}", "tag": "{s}", "v": true, "badge": "{$badge}"}}'
        """#,
        #"""
        'identifiers', 'template', '{"s": "slug!", "l": "uuids(40)!"}', '{"container": "c"}',
        push_type => 'background', priority => 5::smallint
        """#,
        #"""
        'plugin', 'code', '{"code": "code(acme)!", "n": "int?"}', '{"title": "App", "body": "Open it",
          "data": {"c": "{code}", "n": "{n}", "mv": "{$mapping}"}}', mutable_content => true
        """#,
    ]

    @Test(arguments: DatabaseServer.allCases)
    func `The largest notification of a kind has as many bytes as its declaration is taken for`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run("SELECT postbell.set_instance('default', repeat('i', 64))")
            for declaration in Self.full {
                try await outbox.run("SELECT postbell.define_kind(\(declaration))")
                let kind = String(declaration.split(separator: "'")[0])
                let (real, said) = (try await Self.largest(kind, in: outbox), try await Self.said(kind, in: outbox))
                #expect(said.apns >= real.apns && said.apns <= real.apns + 80, "\(kind): \(said) for \(real)")
                #expect(said.fcm >= real.fcm && said.fcm <= real.fcm + 80, "\(kind): \(said) for \(real)")
            }
        }
    }

    @Test(arguments: ShippedCatalog.allCases)
    func `No notification of a shipped catalog can be too large`(catalog: ShippedCatalog) async throws {
        try await Outbox.on(.postgres15) { outbox in
            try await outbox.run(try catalog.catalog())
            for kind in Set(CatalogSample.all(of: catalog).map(\.kind)) {
                let (real, said) = (try await Self.largest(kind, in: outbox), try await Self.said(kind, in: outbox))
                #expect(said.apns >= real.apns && said.fcm >= real.fcm, "\(kind): \(said) for \(real)")
                #expect(said.apns <= 4096 && said.fcm <= 4096, "\(kind): \(said)")
            }
            #expect(
                try await outbox.texts(
                    "SELECT k.name FROM postbell.kinds k WHERE postbell.size_warning(k) IS NOT NULL") == [])
        }
    }

    private static let warned: [(declaration: String, warning: String)] = [
        (
            #"'k', 'template', '{"t": "text(990)?"}', '{"title": "{t}", "visible": {"t": null}}'"#,
            "4278 bytes for APNs, which takes 4096, and 4463 bytes for FCM, which takes 4096"
        ),
        (
            #"'k', 'template', '{"t": "uuids(100)?"}', '{"title": "x"}', push_type => 'voip'"#,
            "4204 bytes for FCM, which takes 4096"
        ),
        (#"'k', 'template', '{"t": "uuids(80)?"}', '{"title": "x"}'"#, "null"),
        ("'k', 'raw', producers => '{postbell_owner}'", "null"),
    ]

    @Test(arguments: warned)
    func `A kind that may get too large is declared, and warned of`(declaration: String, warning: String) async throws {
        try await Outbox.on(.postgres15) { outbox in
            let address = try "\(outbox.database.server.connectionString()) dbname=\(outbox.database.name)"
            let client = try PeerProcess(
                "/bin/sh",
                ["-c", #"exec psql -qXAt "$0" -c "$1" 2>&1"#, address, "SELECT postbell.define_kind(\(declaration))"])
            let line = try client.nextLine()
            if warning == "null" {
                #expect(Int(line) != nil, "\(line)")
            } else {
                #expect(line == "WARNING:  kind.size: kind \"k\" can come to \(warning)")
            }
            #expect(client.exitStatus() == 0)
            let said = try await outbox.texts("SELECT postbell.size_warning(k) FROM postbell.kinds k WHERE name = 'k'")
            #expect(said == [warning])
        }
    }
}

import Foundation
import OutboxCore
import OutboxPostgres
import Support
import Testing

@testable import Operations

/// `postbell show`, on real servers with a real store.
@Suite(.serialized) struct ShowCommandTests {
    private func next(_ scene: LookingScene, _ name: String) throws -> String {
        (try scene.json("show", name)["next"] as? [String] ?? []).joined(separator: "\n")
    }

    @Test(arguments: DatabaseServer.allCases)
    func aLifeIsFollowedFromTheInsertToItsEnd(server: DatabaseServer) async throws {
        try await LookingScene.on(server) { scene in
            let device = try await scene.device()
            let id = try await scene.enqueue("approval:1", more: "subject => 'approval:1'")
            #expect(try next(scene, id).contains("the next claim of a worker takes it."))
            let batch = try await scene.claim()
            var life = try scene.json("show", "approval:1")
            var place = try #require((life["places"] as? [[String: Any]])?.first)
            #expect(place["place"] as? String == "lease" && place["worker"] as? String == "tester/1")
            #expect(place["worker_state"] as? String == "alive" && place["due_at"] is NSNull)
            #expect(try next(scene, id).contains("tester/1 is sending it, and holds it until "))

            try await scene.settle(
                batch, Outcome(.retry, status: 503, reason: "ServiceUnavailable"), again: .seconds(3600))
            life = try scene.json("show", id.uppercased())
            #expect(life["status"] as? String == "pending" && life["id"] as? String == id)
            #expect(life["dedupe_key"] as? String == "approval:1" && life["subject"] as? String == "approval:1")
            place = try #require((life["places"] as? [[String: Any]])?.first)
            #expect(place["place"] as? String == "queue" && place["route_state"] as? String == "up")
            #expect((place["due_at"] as? String)?.hasSuffix("Z") == true && place["leased_until"] is NSNull)
            #expect(
                try next(scene, id).contains(
                    "on Phone the provider could not take it (503 ServiceUnavailable); it is then tried again."))

            try await scene.run(
                "UPDATE postbell.queue SET due_at = now(); UPDATE postbell.deliveries SET retry_at = now()")
            try await scene.attempt(Outcome(.delivered, status: 200))
            life = try scene.json("show", id)
            #expect(life["status"] as? String == "dispatched" && (life["places"] as? [Any])?.isEmpty == true)
            let attempts = try #require(life["attempts"] as? [[String: Any]])
            #expect(attempts.map { $0["outcome"] as? String } == ["retry", "delivered"])
            #expect(attempts.map { $0["decides"] as? Bool } == [false, true])
            #expect(attempts.map { $0["device_id"] as? String } == [device, device])
            #expect(try next(scene, id).contains("the provider accepted it for 1 of 1 device."))
            let text = try scene.postbell("show", id).output
            #expect(text.contains("notification  \(id)\nstatus        dispatched\n"))
            #expect(text.contains("for           anna (tenant default)\n"))
            #expect(text.contains("WHAT HAPPENS NEXT\nDone "))
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func whatHoldsANotificationIsSaid(server: DatabaseServer) async throws {
        try await LookingScene.on(server) { scene in
            try await scene.device()
            try await scene.device("ben", route: 2)
            try await scene.enqueue("unserved", to: "ben")
            #expect(try next(scene, "unserved").contains("but is held: no live worker serves fcm/app.two."))
            try await scene.enqueue("paused")
            try await scene.heartbeat(
                .paused, reason: "403 InvalidProviderToken", since: .seconds(-60), until: .seconds(600))
            #expect(
                try next(scene, "paused").contains(
                    "because its lane apns/production/default is paused (403 InvalidProviderToken)."))
            try await scene.heartbeat()
            try await scene.claim()
            try await scene.run("UPDATE postbell.leases SET until = now() - interval '20 s'")
            #expect(try next(scene, "paused").contains("a live worker takes over within seconds"))
            try await scene.run("UPDATE postbell.workers SET heartbeat_at = now() - interval '1 h'")
            #expect(try next(scene, "paused").contains("it stays so until a worker is started; none is alive."))
            try await scene.heartbeat()
            try await scene.recover()
            #expect(try next(scene, "paused").contains("A worker died once while it held it"))
            let attempts = try scene.json("show", "paused")["attempts"] as? [[String: Any]]
            #expect(attempts?.map { $0["reason"] as? String } == ["lease_lost"])
            try await scene.run(
                "SELECT postbell.define_kind('slow', 'template', '{}', '{\"title\": \"x\"}',"
                    + " wait_for_device => '1 h'); SELECT postbell.enqueue('slow', 'nobody', 'first')")
            #expect(try next(scene, "first").contains("It waits for a first device of the person until "))
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func whyNobodyWasReachedIsSaid(server: DatabaseServer) async throws {
        try await LookingScene.on(server) { scene in
            try await scene.device()
            try await scene.enqueue("dead")
            try await scene.attempt(Outcome(.unregistered, status: 410, reason: "Unregistered"))
            #expect(try next(scene, "dead").contains("On Phone: its token is dead (410 Unregistered)"))
            try await scene.enqueue("held")
            try await scene.heartbeat(hook: "stale: it raised an error")
            #expect(try next(scene, "held").contains("a hook of its kind fails since "))
            let hook = try #require(try scene.json("show", "held")["hook"] as? [String: Any])
            #expect(hook["worker"] as? String == "tester/1" && hook["reason"] as? String == "stale: it raised an error")
            try await scene.heartbeat()
            #expect(try scene.json("show", "held")["hook"] is NSNull)
            try await scene.enqueue("late", more: "expires_at => now() - interval '1 s'")
            #expect(try next(scene, "late").hasPrefix("Expired "))
            try await scene.enqueue("over", more: "subject => 's'")
            try await scene.run("SELECT postbell.supersede('default', 's')")
            #expect(try next(scene, "over").contains("it ends as superseded when a worker comes to it"))
            try await scene.run(
                "SELECT postbell.define_kind('quick', 'template', '{}', '{\"title\": \"x\"}', wait_for_device => '0');"
                    + "SELECT postbell.enqueue('quick', 'nobody', 'alone')")
            _ = try await scene.store.resolveUnrouted(limit: 10)
            #expect(try next(scene, "alone").contains("nobody was reached: the person had no active device."))
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func aKeyOfSeveralTenantsNeedsItsTenant(server: DatabaseServer) async throws {
        try await LookingScene.on(server) { scene in
            let one = try await scene.enqueue("a")
            try await scene.run("SET postbell.tenant_id = 'other'")
            let other = try await scene.enqueue("a", more: "tenant_id => 'other'")
            try await scene.run("RESET postbell.tenant_id")
            let unclear = try scene.postbell("show", "a")
            #expect(unclear.status == 2)
            #expect(unclear.lines.count == 1)
            #expect(unclear.errors.contains(#"2 tenants have a notification of the key "a""#))
            #expect(unclear.errors.contains(#"add --tenant, one of "default", "other""#))
            #expect(try scene.json("show", "a", "--tenant", "default")["id"] as? String == one)
            #expect(try scene.json("show", "a", "--tenant", "other")["id"] as? String == other)
            #expect(try scene.json("show", other)["tenant_id"] as? String == "other")
            #expect(try scene.postbell("show", other, "--tenant", "default").status == 1)
        }
    }

    @Test func aKeyMayLookLikeAnIdOrAnOption() async throws {
        try await LookingScene.on(.postgres15) { scene in
            let key = "00000000-0000-4000-8000-000000000000"
            let id = try await scene.enqueue(key)
            #expect(try scene.json("show", key)["id"] as? String == id)
            let odd = try await scene.enqueue("--json")
            let result = try scene.postbell("show", "--json", "--", "--json")
            #expect(result.output.contains(odd))
        }
    }

    @Test func whatDoesNotExistIsBad() async throws {
        try await LookingScene.on(.postgres15) { scene in
            for name in ["nothing", "00000000-0000-4000-8000-000000000000", "\u{1B}[31m\n"] {
                let result = try scene.postbell("show", name)
                #expect(result.status == 1)
                #expect(result.output.isEmpty)
                #expect(result.lines.count == 1)
                #expect(result.errors.contains("there is no notification "))
                #expect(!result.errors.contains("\u{1B}"))
            }
        }
    }

    @Test func neitherTokenNorPayloadNorEscapesAreShown() async throws {
        try await LookingScene.on(.postgres15) { scene in
            try await scene.device(name: "\u{1B}]0;x\u{07}\nphone")
            let id = try await scene.value(
                "SELECT postbell.enqueue('note', 'anna', 'a', payload => '{\"word\": \"hush\"}')")
            try await scene.attempt(Outcome(.retry, status: 503, reason: "x\u{1B}[31m"), again: .seconds(60))
            let token = try await scene.value("SELECT token FROM postbell.devices")
            for arguments in [["show", id], ["show", id, "--json"]] {
                let output = try Program.run(arguments, environment: scene.environment()).output
                #expect(!output.contains("\u{1B}") && !output.contains("\u{07}"))
                #expect(!output.contains(token) && !output.contains("hush"))
            }
            let fingerprint = try await scene.value("SELECT token_fingerprint FROM postbell.ledger")
            #expect(try scene.postbell("show", id, "--json").output.contains(fingerprint))
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func onlyReadersMayLook(server: DatabaseServer) async throws {
        try await LookingScene.on(server) { scene in
            let id = try await scene.enqueue("a")
            let refused = try scene.postbell("show", id, as: LookingScene.producer)
            #expect(refused.status == 6)
            #expect(refused.lines.count == 1)
            #expect(refused.errors.contains("; use a login that is granted postbell_reader"))
        }
    }
}

import Races
import Support
import Testing

/// A hundred tries of each race; `scripts/faults --only races` makes ten thousand. And that each would notice.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct RaceTests {
    @Test(arguments: DatabaseServer.allCases)
    func `Two roles that finish one notification at once come to the right status`(
        server: DatabaseServer
    ) async throws {
        #expect(try await RoleRace.run(on: server, tries: 100).findings == [])
    }

    @Test(arguments: DatabaseServer.allCases, RegistrationRace.Order.allCases)
    func `A device that registers beside an enqueue is left out only where that is documented`(
        server: DatabaseServer, order: RegistrationRace.Order
    ) async throws {
        #expect(try await RegistrationRace.run(order, on: server, tries: 100).findings == [])
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A device that was delivered to is no target again when its neighbour is released`(
        server: DatabaseServer
    ) async throws {
        #expect(try await ReleaseRace.run(on: server, tries: 100).findings == [])
    }

    @Test(arguments: DatabaseServer.allCases)
    func `What is superseded before its enqueue commits is not sent`(server: DatabaseServer) async throws {
        #expect(try await SupersessionRace.run(on: server, tries: 100).findings == [])
    }

    /// That a push arrives at all, and which way: how long it took is for `scripts/faults` to say.
    @Test(arguments: DatabaseServer.allCases)
    func `A commit while a worker goes to sleep is seen, by the poll at the latest`(
        server: DatabaseServer
    ) async throws {
        let report = try await SleepRace.run(on: server, tries: 24, lanes: 2, margin: .seconds(60))
        #expect(report.findings == [])
        #expect(report.count("unnotified") == 12)
    }

    // MARK: Damage

    /// A trigger on a table, whose body is this.
    private static func trigger(on table: String, _ body: String) -> String {
        """
        CREATE FUNCTION public.damage() RETURNS trigger LANGUAGE plpgsql AS $damage$ BEGIN \(body) END $damage$;
        CREATE TRIGGER damage BEFORE INSERT ON postbell.\(table) FOR EACH ROW EXECUTE FUNCTION public.damage();
        """
    }

    @Test func `An end of one route that ends the whole notification is noticed`() async throws {
        let damage = Self.trigger(on: "settlements", "NEW.route_no := NULL; RETURN NEW;")
        #expect(try await RoleRace.run(on: .postgres15, tries: 20, damage: damage).findings != [])
    }

    @Test(arguments: [
        (
            RegistrationRace.Order.before,
            trigger(on: "queue", "IF NEW.route_no = 2 THEN RETURN NULL; END IF; RETURN NEW;")
        ),
        (
            .after,
            """
            CREATE OR REPLACE FUNCTION postbell.device_joins(device postbell.devices) RETURNS void
            LANGUAGE sql AS 'SELECT';
            """
        ),
        (
            .after,
            """
            CREATE OR REPLACE FUNCTION postbell.device_joins(device postbell.devices) RETURNS void
            LANGUAGE sql AS $$
                INSERT INTO postbell.queue (due_at, notification_id, tenant_no, route_no, urgency, prior)
                SELECT now() + interval '50 ms', o.id, o.tenant_no, device.route_no, 0, true
                FROM postbell.outbox o WHERE o.principal_id = device.principal_id
                ON CONFLICT DO NOTHING
            $$;
            """
        ),
    ])
    func `A registration that joins nothing, or what has ended, is noticed`(
        order: RegistrationRace.Order, damage: String
    ) async throws {
        #expect(try await RegistrationRace.run(order, on: .postgres15, tries: 30, damage: damage).findings != [])
    }

    @Test func `A released row that forgets its history is noticed`() async throws {
        let damage = Self.trigger(on: "queue", "NEW.prior := false; RETURN NEW;")
        #expect(try await ReleaseRace.run(on: .postgres15, tries: 20, damage: damage).findings != [])
    }

    @Test func `A supersession whose time lies too early is noticed`() async throws {
        let damage = Self.trigger(on: "supersessions", "NEW.at := NEW.at - interval '1 s'; RETURN NEW;")
        #expect(try await SupersessionRace.run(on: .postgres15, tries: 20, damage: damage).findings != [])
    }
}

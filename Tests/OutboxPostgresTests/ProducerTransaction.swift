import Postgres
import Support

@testable import OutboxPostgres

/// A transaction that does all that a producer can do, and how to see what there is of it.
enum ProducerTransaction {
    /// People with and without devices, an order of the app, and two notifications that the transaction will end.
    static let setup = """
        CREATE TABLE orders (id int PRIMARY KEY, state text NOT NULL);
        GRANT SELECT, INSERT, UPDATE ON orders TO postbell_producer;
        INSERT INTO orders VALUES (1, 'open');
        SELECT postbell.define_kind('note', 'template', '{"word": "slug?"}', '{"title": "Note"}');
        \(Outbox.registration());
        \(Outbox.registration("tablet", route: 2));
        SELECT postbell.enqueue('note', 'anna', 'moved.on', subject => 'order:0');
        SELECT postbell.enqueue('note', 'anna', 'erased', '{"word": "tea"}', thread => 'chat')
        """

    /// Without BEGIN and COMMIT.
    static let statements = [
        "INSERT INTO orders VALUES (2, 'new') ON CONFLICT DO NOTHING",
        "UPDATE orders SET state = 'paid' WHERE id = 1",
        """
        INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, payload)
        VALUES ('anna', 'note', 'order:1', 'order:1', '{"word": "paid"}') ON CONFLICT DO NOTHING
        """,
        bulk,
        "SELECT postbell.enqueue('note', 'nobody', 'waits.for.a.device')",
        "SELECT postbell.enqueue('note', 'anna', 'late', expires_at => now() - interval '1 s')",
        "SELECT postbell.enqueue_or_note('unknown', 'anna', 'refused')",
        "SELECT postbell.supersede('default', 'order:0')",
        "SELECT postbell.erase('default', 'chat')",
        "UPDATE orders SET state = 'told' WHERE id = 2",
    ]

    /// A hundred notifications at once.
    static let bulk = """
        INSERT INTO postbell.outbox (principal_id, kind, dedupe_key)
        SELECT 'anna', 'note', 'bulk:' || n FROM generate_series(1, 100) n ON CONFLICT DO NOTHING
        """

    /// What `state` says without it, and with it.
    static let nothing = "1:open, 2 in outbox, 4 in queue, 0 emptied, 0 ended, 0+0 facts, 0 noted"
    static let everything = "1:paid 2:told, 105 in outbox, 207 in queue, 1 emptied, 1 ended, 1+1 facts, 1 noted"

    static let state = """
        SELECT format('%s, %s in outbox, %s in queue, %s emptied, %s ended, %s+%s facts, %s noted',
            (SELECT string_agg(id || ':' || state, ' ' ORDER BY id) FROM orders),
            (SELECT count(*) FROM postbell.outbox),
            (SELECT count(*) FROM postbell.queue),
            (SELECT count(*) FROM postbell.outbox WHERE thread = 'chat' AND payload = '{}'),
            (SELECT count(*) FROM postbell.settlements),
            (SELECT count(*) FROM postbell.supersessions),
            (SELECT count(*) FROM postbell.erasures),
            (SELECT count(*) FROM postbell.events WHERE name = 'notification.enqueue_failed'))
        """

    static let audit = "SELECT DISTINCT fault FROM postbell.audit('-infinity', '0')"

    /// Begins it on `producer` and does its first statements.
    static func begin(_ count: Int, on producer: PostgresConnection) async throws {
        try await producer.execute("BEGIN")
        for statement in statements.prefix(count) { try await producer.execute(statement) }
    }
}

extension PostgresConnection {
    /// Waits until `query` answers `answer`; the failure says what it answered last.
    func expect(_ query: String, _ answer: String) async throws {
        let end = ContinuousClock.now + .seconds(30)
        var last: [String] = []
        while ContinuousClock.now < end {
            last = try await texts(query)
            if last == [answer] { return }
            try await Task.sleep(for: .milliseconds(5))
        }
        throw TestSetupError("\(last) in the place of \(answer): \(query)")
    }
}

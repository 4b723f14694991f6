import OutboxCore
import Postgres

/// Sends back, unsent, the rows of claims whose answer was lost: the worker knows the batch it asked for. The attempt
/// is given back, no crash is counted and nothing is `unknown`. Repeated with every recovery, because the old backend
/// may commit late.
///
/// Parameters: $1 uuid[] batches, $2 uuid owner. Result: `returned` int8.
enum AdoptStatement {
    static let statement = PostgresStatement("adopt", text, parameterTypes: [.uuid.array, .uuid])

    static let text = """
        WITH lease AS MATERIALIZED (
            SELECT * FROM postbell.leases
            WHERE batch = ANY ($1::uuid[]) AND owner = $2::uuid
            FOR UPDATE
        ),
        gone AS (
            DELETE FROM postbell.leases
            WHERE batch = ANY (ARRAY(SELECT batch FROM lease))
        ),
        back AS (
            -- from its own bit only: what has left the lease already goes nowhere
            INSERT INTO postbell.queue (
                due_at, notification_id, after_device, tenant_no, route_no, crashes, urgency, attempt, prior)
            SELECT now(), u.id, u.cursor, u.tenant_no, l.route_no, u.crashes, u.urgency, u.attempt - 1, true
            FROM lease l, unnest(l.ids, l.tenants, l.urgencies, l.attempts, l.crashes, l.cursors)
                WITH ORDINALITY u(id, tenant_no, urgency, attempt, crashes, cursor, pos)
            WHERE get_bit(l.open, (u.pos - 1)::int) = 1
            ORDER BY u.id
            ON CONFLICT DO NOTHING
            RETURNING 1
        )
        SELECT count(*) AS returned FROM back
        """

    static func command(_ batches: [Identifier], owner: Identifier) -> PostgresCommand {
        var parameters = PostgresParameters()
        parameters.append(PostgresArray(batches))
        parameters.append(owner)
        return PostgresCommand(statement, parameters)
    }
}

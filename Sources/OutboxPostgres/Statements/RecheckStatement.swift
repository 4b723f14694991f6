import OutboxCore
import Postgres

/// Evaluates again, for targets of one lease, everything that the claim evaluated.
///
/// Parameters: $1 uuid[] notifications, $2 int8[] devices, $3 int4[] which token, $4 uuid batch, $5 uuid owner, $6
/// int2 route.
/// Result, one row per target in order: `owned` bool (the lease is ours and has not lapsed), `reason` text (null: may
/// be sent).
enum RecheckStatement {
    static let statement = PostgresStatement(
        "recheck", text,
        parameterTypes: [
            .uuid.array, .int8.array, .int4.array, .uuid, .uuid, .int2,
        ])

    static let text = """
        WITH own AS MATERIALIZED (
            SELECT 1 FROM postbell.leases
            WHERE batch = $4::uuid AND owner = $5::uuid AND until > now()
        )
        SELECT
            EXISTS (SELECT 1 FROM own) AS owned,
            CASE
                WHEN n.id IS NULL THEN 'no_access'
                WHEN w.status IS NOT NULL THEN
                    CASE
                        WHEN w.reason IN ('superseded', 'seen', 'no_access', 'erased', 'cancelled', 'expired')
                            THEN w.reason
                        ELSE 'cancelled'
                    END
                \(ClosingFacts.reasons)
                WHEN n.expires_at <= now() THEN 'expired'
                WHEN d.device_no IS NULL
                    OR d.status <> 'active'
                    OR d.tenant_id <> n.tenant_id
                    OR d.principal_id <> n.principal_id
                    THEN 'revoked'
                WHEN d.token IS NULL THEN 'no_token'
                WHEN d.token_seq <> x.token_seq OR d.route_no <> $6::int2 THEN 'token_changed'
                WHEN n.kind = ANY (d.muted_kinds) THEN 'muted'
            END AS reason
        FROM unnest($1::uuid[], $2::int8[], $3::int4[])
            WITH ORDINALITY x(notification_id, device_no, token_seq, place)
        LEFT JOIN postbell.outbox n ON n.id = x.notification_id
        LEFT JOIN LATERAL (
            SELECT s.status, s.reason
            FROM postbell.settlements s
            WHERE s.notification_id = x.notification_id AND s.route_no IS NULL
            ORDER BY s.seq
            LIMIT 1
        ) w ON true
        LEFT JOIN LATERAL (
            -- no join by hash in a pinned session: the primary key, row by row
            SELECT v.device_no, v.status, v.tenant_id, v.principal_id, v.token, v.token_seq, v.route_no, v.muted_kinds
            FROM postbell.devices v
            WHERE v.device_no = x.device_no
        ) d ON true
        ORDER BY x.place
        """

    static func command(
        _ targets: [RecheckTarget], batch: Identifier, owner: Identifier, route: RouteNumber
    ) -> PostgresCommand {
        var notifications = PostgresArray(of: .uuid, capacity: targets.count)
        var devices = PostgresArray(of: .int8, capacity: targets.count)
        var tokenSequences = PostgresArray(of: .int4, capacity: targets.count)
        for target in targets {
            notifications.append(target.notification)
            devices.append(target.device)
            tokenSequences.append(target.tokenSequence)
        }
        var parameters = PostgresParameters()
        for array in [notifications, devices, tokenSequences] { parameters.append(array) }
        parameters.append(batch)
        parameters.append(owner)
        parameters.append(route)
        return PostgresCommand(statement, parameters)
    }

    /// A reason for each target that fell out; nil when the lease is not ours any more.
    static func reasons(_ result: PostgresResult) throws(PostgresError) -> [SettlementReason?]? {
        var reasons: [SettlementReason?] = []
        reasons.reserveCapacity(result.rowCount)
        for row in 0..<result.rowCount {
            guard try result.bool(row, 0) else { return nil }
            guard let text = try result.textOrNil(row, 1) else {
                reasons.append(nil)
                continue
            }
            guard let reason = SettlementReason(rawValue: text) else {
                throw PostgresError(.decoding, operation: "recheck", message: "an unknown reason")
            }
            reasons.append(reason)
        }
        return reasons
    }
}

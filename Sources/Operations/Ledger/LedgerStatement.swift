import OutboxCore
import Postgres

/// Finds attempts, newest first, one more than asked for, so that it can be said that there are more.
///
/// Ledger rows are found by time (their key is time-ordered) or by notification; there is no index by person or device,
/// for each would cost every push. A person's rows are found through `outbox_principal`, notification by notification
/// from the newest on, each bounded by the notification's own beginning, so that older days are not touched.
///
/// Parameters: $1 text tenant, $2 text principal, $3 text kind, $4 int8 device, $5 int2 outcome, $6 text reason,
/// $7 uuid notification, $8 and $9 timestamptz since and until, $10 int8 rows. Null does not narrow.
enum LedgerStatement {
    /// By time, or by notification.
    static let byTime = PostgresStatement("ledger_by_time", text(chosen: chosenByTime), parameterTypes: parameterTypes)
    /// By the person, who must be given.
    static let byPrincipal = PostgresStatement(
        "ledger_by_principal", text(chosen: chosenByPrincipal), parameterTypes: parameterTypes)

    private static let parameterTypes: [PostgresType] = [
        .text, .text, .text, .int8, .int2, .text, .uuid, .timestamptz, .timestamptz, .int8,
    ]

    private static let narrowed = """
        ($1::text IS NULL OR d.tenant_no = (SELECT t.tenant_no FROM postbell.tenants t WHERE t.tenant_id = $1::text))
            AND ($4::int8 IS NULL OR d.device_no = $4::int8)
            AND ($5::int2 IS NULL OR d.outcome = $5::int2)
            AND ($6::text IS NULL OR d.reason = $6::text)
            AND d.id >= coalesce(postbell.uuid_floor($8::timestamptz), '00000000-0000-0000-0000-000000000000')
            AND d.id < coalesce(postbell.uuid_floor($9::timestamptz), 'ffffffff-ffff-ffff-ffff-ffffffffffff')
        """

    private static let chosenByTime = """
        SELECT d.id, d.notification_id
        FROM postbell.deliveries d
        WHERE \(narrowed)
            AND ($7::uuid IS NULL OR d.notification_id = $7::uuid)
            AND ($2::text IS NULL AND $3::text IS NULL OR EXISTS (
                SELECT 1 FROM postbell.outbox o
                WHERE o.id = d.notification_id
                    AND o.kind = coalesce($3::text, o.kind)
                    AND o.principal_id = coalesce($2::text, o.principal_id)))
        ORDER BY d.id DESC
        LIMIT $10::int8
        """

    private static let chosenByPrincipal = """
        SELECT d.id, d.notification_id
        FROM (
            -- the tenant is the first column of the index
            SELECT o.id, o.created_at
            FROM postbell.tenants t
            CROSS JOIN LATERAL (
                SELECT n.id, n.created_at
                FROM postbell.outbox n
                WHERE n.tenant_id = t.tenant_id
                    AND n.principal_id = $2::text
                    AND n.kind = coalesce($3::text, n.kind)
                    AND n.id < coalesce(
                        postbell.uuid_floor($9::timestamptz + interval '1 day'),
                        'ffffffff-ffff-ffff-ffff-ffffffffffff')
                OFFSET 0
            ) o
            WHERE t.tenant_id = coalesce($1::text, t.tenant_id)
            ORDER BY o.id DESC
        ) o
        CROSS JOIN LATERAL (
            SELECT d.id, d.notification_id
            FROM postbell.deliveries d
            WHERE \(narrowed)
                AND d.notification_id = o.id
                AND ($7::uuid IS NULL OR d.notification_id = $7::uuid)
                -- the worker's ids follow the database's clock, not exactly
                AND d.id >= postbell.uuid_floor(o.created_at - interval '1 day')
            ORDER BY d.id DESC
        ) d
        LIMIT $10::int8
        """

    private static func text(chosen: String) -> String {
        """
        WITH chosen AS MATERIALIZED (
            \(chosen)
        )
        SELECT
            l.id, l.tenant_id, l.notification_id, o.principal_id, o.kind, o.dedupe_key,
            l.device_id, l.device_name, l.device_kind, l.provider, l.environment, l.topic,
            l.route_no, l.attempt, l.outcome, l.final, l.late, l.retry_at, l.provider_status,
            coalesce(l.provider_reason, l.skip_reason) AS reason, l.provider_id, l.token_fingerprint, l.worker,
            l.attempted_at, l.answered_at
        FROM chosen c
        CROSS JOIN LATERAL (SELECT * FROM postbell.ledger v WHERE v.id = c.id OFFSET 0) l
        LEFT JOIN postbell.outbox o ON o.id = c.notification_id
        ORDER BY l.id DESC
        """
    }

    /// The statement for a filter, with `now` as the database has it and the device's number.
    static func command(_ filter: LedgerFilter, device: DeviceKey?, now: Timestamp) -> PostgresCommand {
        let principal = filter.principal ?? device?.principal
        var parameters = PostgresParameters()
        parameters.append(textOrNil: filter.tenant ?? device?.tenant)
        parameters.append(textOrNil: principal)
        parameters.append(textOrNil: filter.kind)
        if let device { parameters.append(device.number) } else { parameters.appendNull() }
        if let outcome = filter.outcome { parameters.append(outcome.rawValue) } else { parameters.appendNull() }
        parameters.append(textOrNil: filter.reason)
        if let id = filter.notification { parameters.append(uuid: (id.high, id.low)) } else { parameters.appendNull() }
        for moment in [filter.effectiveSince, filter.until] {
            if let moment {
                parameters.append(timestamp: moment.instant(from: now).microseconds)
            } else {
                parameters.appendNull()
            }
        }
        parameters.append(Int64(filter.limit + 1))
        let isByPrincipal = principal != nil && filter.notification == nil
        return PostgresCommand(isByPrincipal ? byPrincipal : byTime, parameters)
    }

    /// A device of the registry: what the ledger and the outbox know it and its person by.
    struct DeviceKey: Sendable {
        let number: Int64
        let tenant: String
        let principal: String
    }

    /// Parameter: $1 uuid device. Result: `device_no` int8, `tenant_id` text, `principal_id` text.
    static let device = PostgresStatement(
        "ledger_device", "SELECT device_no, tenant_id, principal_id FROM postbell.devices WHERE id = $1::uuid",
        parameterTypes: [.uuid])
}

extension PostgresParameters {
    /// A `text`, or a null.
    mutating func append(textOrNil text: String?) {
        if let text { append(text) } else { appendNull() }
    }
}

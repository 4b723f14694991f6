import OutboxCore
import Postgres

/// The registry of workers: announced at the start, repeated as a heartbeat, signed off at the end.
enum WorkerStatement {
    /// | parameter | type | meaning |
    /// | --- | --- | --- |
    /// | $1, $2, $3 | uuid, text, text | owner, name (host and process), version |
    /// | $4, $5 | int2[], int4[] | routes served, and which lane serves each, from 1 |
    /// | $6, $7, $8 | text[] | lanes: name, state, reason or null |
    /// | $9, $10 | timestamptz[] | lanes: since and until when they are not up, or null |
    /// | $11, $12 | text[] | kinds whose hooks fail: name, reason |
    /// | $13, $14 | timestamptz[] | the same: since when, and when they are asked again |
    ///
    /// Result: `worker_no` int4, `now` timestamptz.
    static let register = PostgresStatement(
        "register_worker", registerText,
        parameterTypes: [
            .uuid, .text, .text, .int2.array, .int4.array, .text.array, .text.array, .text.array, .timestamptz.array,
            .timestamptz.array, .text.array, .text.array, .timestamptz.array, .timestamptz.array,
        ])

    static let registerText = """
        INSERT INTO postbell.workers AS w (owner, name, version, routes, lanes, hooks)
        SELECT
            $1::uuid, $2::text, $3::text, $4::int2[],
            coalesce(
                jsonb_object_agg(
                    l.name,
                    jsonb_build_object(
                        'state', l.state, 'reason', l.reason, 'since', l.since, 'until', l.until,
                        'routes', ARRAY(
                            SELECT r.route_no FROM unnest($4::int2[], $5::int4[]) r(route_no, lane)
                            WHERE r.lane = l.place))),
                '{}'),
            (
                SELECT coalesce(
                    jsonb_object_agg(
                        h.kind, jsonb_build_object('reason', h.reason, 'since', h.since, 'until', h.until)),
                    '{}')
                FROM unnest($11::text[], $12::text[], $13::timestamptz[], $14::timestamptz[])
                    h(kind, reason, since, until)
            )
        FROM unnest($6::text[], $7::text[], $8::text[], $9::timestamptz[], $10::timestamptz[])
            WITH ORDINALITY l(name, state, reason, since, until, place)
        ON CONFLICT (owner) DO UPDATE SET
            name = excluded.name,
            version = excluded.version,
            routes = excluded.routes,
            lanes = excluded.lanes,
            hooks = excluded.hooks,
            heartbeat_at = clock_timestamp(),
            stopped_at = NULL
        RETURNING w.worker_no, now() AS now
        """

    /// Parameter: $1 uuid owner. No result.
    static let unregister = PostgresStatement("unregister_worker", unregisterText, parameterTypes: [.uuid])

    static let unregisterText = """
        UPDATE postbell.workers SET
            routes = '{}',
            lanes = '{}',
            hooks = '{}',
            stopped_at = clock_timestamp(),
            heartbeat_at = clock_timestamp()
        WHERE owner = $1::uuid
        """

    static func registration(
        owner: Identifier, name: String, version: String, lanes: [LaneReport], hooks: [HookReport]
    ) -> PostgresCommand {
        let routes = lanes.flatMap(\.routes)
        var places = PostgresArray(of: .int4, capacity: routes.count)
        for (index, lane) in lanes.enumerated() {
            for _ in lane.routes { places.append(Int32(index + 1)) }
        }
        var texts = (0..<3).map { _ in PostgresArray(of: .text, capacity: lanes.count) }
        var instants = (0..<2).map { _ in PostgresArray(of: .timestamptz, capacity: lanes.count) }
        for lane in lanes {
            texts[0].append(lane.name)
            texts[1].append(lane.condition.rawValue)
            texts[2].append(textOrNull: lane.reason ?? "")
            for (index, instant) in [lane.since, lane.until].enumerated() {
                if let instant { instants[index].append(instant) } else { instants[index].appendNull() }
            }
        }
        var parameters = PostgresParameters()
        parameters.append(owner)
        parameters.append(name)
        parameters.append(version)
        for array in [PostgresArray(routes), places] + texts + instants { parameters.append(array) }
        for array in arrays(of: hooks) { parameters.append(array) }
        return PostgresCommand(register, parameters)
    }

    private static func arrays(of hooks: [HookReport]) -> [PostgresArray] {
        var texts = (0..<2).map { _ in PostgresArray(of: .text, capacity: hooks.count) }
        var instants = (0..<2).map { _ in PostgresArray(of: .timestamptz, capacity: hooks.count) }
        for hook in hooks {
            texts[0].append(hook.kind)
            texts[1].append(hook.reason)
            instants[0].append(hook.since)
            instants[1].append(hook.until)
        }
        return texts + instants
    }

    static func end(owner: Identifier) -> PostgresCommand {
        var parameters = PostgresParameters()
        parameters.append(owner)
        return PostgresCommand(unregister, parameters)
    }
}

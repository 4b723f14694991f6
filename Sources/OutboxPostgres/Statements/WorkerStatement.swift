/// The registry of workers: announced at the start, repeated as a heartbeat, signed off at the end.
enum WorkerStatement {
    static let registerName = "register_worker"
    static let unregisterName = "unregister_worker"

    /// Parameters: $1 uuid owner, $2 text name (host and process), $3 text version, $4 int2[] routes served.
    /// Result: `worker_no` int4, `now` timestamptz.
    static let registerText = """
        INSERT INTO postbell.workers AS w (owner, name, version, routes)
        VALUES ($1::uuid, $2::text, $3::text, $4::int2[])
        ON CONFLICT (owner) DO UPDATE SET name = excluded.name, version = excluded.version, routes = excluded.routes,
            heartbeat_at = clock_timestamp(), stopped_at = NULL
        RETURNING w.worker_no, now() AS now
        """

    /// Parameter: $1 uuid owner. No result.
    static let unregisterText = """
        UPDATE postbell.workers SET routes = '{}', stopped_at = clock_timestamp(), heartbeat_at = clock_timestamp()
        WHERE owner = $1::uuid
        """
}

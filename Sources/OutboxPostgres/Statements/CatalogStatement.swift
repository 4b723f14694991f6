import OutboxCore
import Postgres

/// What a worker loads from the registries: again when it meets a number that it does not know.
enum CatalogStatement {

    /// All revisions, because rows enqueued under an earlier one still render; and the mapping's version in the same
    /// snapshot, so that no push is rendered by a half of what was declared together.
    /// Result: `kind_no` int4, `name`, `presentation`, `content` text (JSON), `push_type` text, `priority` int2,
    /// `interruption_level`, `category`, `sound` text, `group_by_thread`, `mutable_content` bool, `provider_ttl` int8
    /// (milliseconds; null: what remains of the deadline), `retry` text (null: the worker's default; `30s,2m` a list,
    /// `2s..5m` base and cap), `key_names`, `key_types` text[] (same length), `mapping_version` text (null: the kind
    /// does not carry it).
    static let kinds = PostgresStatement("kinds", kindsText)

    static let kindsText = """
        SELECT
            k.kind_no, k.name, k.presentation,
            k.content::text AS content,
            k.push_type, k.priority, k.interruption_level, k.category, k.sound, k.group_by_thread, k.mutable_content,
            (extract(epoch FROM k.provider_ttl) * 1000)::int8 AS provider_ttl,
            k.retry,
            ARRAY(SELECT e.key FROM jsonb_each(p.keys) e ORDER BY e.key) AS key_names,
            ARRAY(SELECT e.value ->> 'type' FROM jsonb_each(p.keys) e ORDER BY e.key) AS key_types,
            CASE WHEN k.content::text LIKE '%"{$mapping}"%' THEN (SELECT postbell.mapping_version()) END
                AS mapping_version
        FROM postbell.kinds k
        CROSS JOIN LATERAL (
            -- what is no object has a key of no type: one kind shall not end the statement for all
            SELECT CASE jsonb_typeof(k.payload_keys) WHEN 'object' THEN k.payload_keys ELSE '{"?": {}}' END AS keys
        ) p
        ORDER BY k.kind_no
        """

    /// Result: `route_no` int2, `provider` text, `environment` text (null where the provider has none), `app` text.
    static let routes = PostgresStatement("routes", routesText)

    static let routesText = """
        SELECT r.route_no, r.provider, r.environment, r.app
        FROM postbell.routes r
        ORDER BY r.route_no
        """
}

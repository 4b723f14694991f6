import Postgres

extension PostgresConnection {
    /// The schema in lines, to compare two databases: what tables have, what functions do, who may do what. Days of the
    /// ledger are left out, for they are made from today's date.
    func schemaText() async throws -> [String] {
        try await texts(
            """
            WITH relation AS (
                SELECT c.* FROM pg_class c
                WHERE c.relnamespace = 'postbell'::regnamespace AND c.relname !~ '^deliveries_[0-9]'
            ),
            line AS (
                SELECT concat_ws(' ', 'relation', r.relname, r.relkind, r.relrowsecurity, r.relforcerowsecurity,
                    pg_get_userbyid(r.relowner), r.reloptions,
                    -- a view that is read anew has more casts, brackets and names
                    CASE WHEN r.relkind = 'v' THEN
                        regexp_replace(pg_get_viewdef(r.oid), '::text| AS timestamptz|[()]|\\s+', '', 'g')
                        WHEN r.relkind IN ('i', 'I') THEN pg_get_indexdef(r.oid) END) AS text,
                    coalesce(
                        r.relacl, acldefault(CASE r.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", r.relowner)) AS acl
                FROM relation r
                UNION ALL
                SELECT concat_ws(' ', 'column', r.relname, a.attname, format_type(a.atttypid, a.atttypmod),
                    a.attnotnull, a.attidentity, a.attstorage, pg_get_expr(d.adbin, d.adrelid)), a.attacl
                FROM relation r
                JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
                LEFT JOIN pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum
                UNION ALL
                SELECT concat_ws(' ', 'constraint', r.relname, c.conname, pg_get_constraintdef(c.oid)), NULL
                FROM relation r JOIN pg_constraint c ON c.conrelid = r.oid
                UNION ALL
                SELECT concat_ws(' ', 'policy', r.relname, p.polname, p.polcmd, p.polroles::regrole[]::text,
                    pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)), NULL
                FROM relation r JOIN pg_policy p ON p.polrelid = r.oid
                UNION ALL
                SELECT concat_ws(' ', 'trigger', r.relname, pg_get_triggerdef(t.oid)), NULL
                FROM relation r JOIN pg_trigger t ON t.tgrelid = r.oid
                UNION ALL
                SELECT concat_ws(' ', 'function', pg_get_userbyid(p.proowner), pg_get_functiondef(p.oid)),
                    coalesce(p.proacl, acldefault('f', p.proowner))
                FROM pg_proc p WHERE p.pronamespace = 'postbell'::regnamespace
                UNION ALL
                SELECT concat_ws(' ', 'schema', pg_get_userbyid(n.nspowner)), n.nspacl
                FROM pg_namespace n WHERE n.nspname = 'postbell'
            )
            SELECT concat_ws(' ', l.text, (SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM unnest(l.acl) a))
            FROM line l
            ORDER BY 1
            """)
    }
}

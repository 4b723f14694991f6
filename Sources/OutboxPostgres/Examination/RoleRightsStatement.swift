import Postgres

/// What the role of a session may do, by the catalogs: effective rights, whether they come from a grant to the role, to
/// a role it inherits from, or to PUBLIC.
enum RoleRightsStatement {
    /// Parameters: $1 text[] privileges, $2 text[] kinds, $3 text[] objects, $4 text[] columns (empty: the whole
    /// object); what is expected.
    /// Result: `is_missing` bool (else it is too many), `kind`, `object`, `col`, `privilege` text; no row when the role
    /// has exactly what is expected. Rights on whole tables that exist per column come column by column, unless all
    /// columns have them.
    static let grants = PostgresStatement(
        "role_grants",
        """
        WITH objects AS (
            SELECT c.oid, c.relname::text AS object, CASE c.relkind WHEN 'S' THEN 'sequence' ELSE 'table' END AS kind
            FROM pg_catalog.pg_class c
            WHERE c.relnamespace = 'postbell'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
        ),
        columns AS (
            SELECT o.oid, o.object, a.attnum, a.attname::text AS col, count(*) OVER (PARTITION BY o.oid) AS width
            FROM objects o
            JOIN pg_catalog.pg_attribute a ON a.attrelid = o.oid AND a.attnum > 0 AND NOT a.attisdropped
            WHERE o.kind = 'table'
        ),
        expected AS (
            -- a right on a whole table is one on each of its columns, where columns can have it
            SELECT e.kind, e.object, coalesce(nullif(e.col, ''), c.col, '') AS col, e.privilege
            FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) e(privilege, kind, object, col)
            LEFT JOIN columns c
                ON e.kind = 'table' AND e.col = '' AND c.object = e.object
                AND e.privilege IN ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES')
        ),
        held AS (
            SELECT 'table' AS kind, c.object, c.col, p.privilege
            FROM columns c, unnest('{SELECT,INSERT,UPDATE,REFERENCES}'::text[]) p(privilege)
            WHERE has_column_privilege(c.oid, c.attnum, p.privilege)
            UNION ALL
            SELECT 'table', o.object, '', p.privilege
            FROM objects o, unnest('{DELETE,TRUNCATE,TRIGGER}'::text[]) p(privilege)
            WHERE o.kind = 'table' AND has_table_privilege(o.oid, p.privilege)
            UNION ALL
            SELECT 'sequence', o.object, '', p.privilege
            FROM objects o, unnest('{USAGE,SELECT,UPDATE}'::text[]) p(privilege)
            WHERE o.kind = 'sequence' AND has_sequence_privilege(o.oid, p.privilege)
            UNION ALL
            SELECT 'function', f.proname || '(' || oidvectortypes(f.proargtypes) || ')', '', 'EXECUTE'
            FROM pg_catalog.pg_proc f
            WHERE f.pronamespace = 'postbell'::regnamespace AND has_function_privilege(f.oid, 'EXECUTE')
            UNION ALL
            SELECT 'schema', 'postbell', '', p.privilege
            FROM unnest('{USAGE,CREATE}'::text[]) p(privilege)
            WHERE has_schema_privilege('postbell', p.privilege)
        ),
        differences AS (
            SELECT h.kind IS NULL AS is_missing, kind, object, col, privilege
            FROM expected e
            FULL JOIN held h USING (kind, object, col, privilege)
            WHERE h.kind IS NULL
                -- a superuser has all rights, which tells nothing
                OR (
                    e.kind IS NULL
                    AND NOT (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = CURRENT_USER))
        )
        SELECT DISTINCT
            d.is_missing, d.kind, d.object,
            CASE WHEN count(*) OVER (PARTITION BY d.is_missing, d.kind, d.object, d.privilege) = c.width
                THEN '' ELSE d.col END AS col,
            d.privilege
        FROM differences d
        LEFT JOIN columns c ON d.kind = 'table' AND c.object = d.object AND c.col = d.col
        ORDER BY 1, 2, 3, 4, 5
        """,
        parameterTypes: [.text.array, .text.array, .text.array, .text.array])

    static func parameters(_ grants: [Grant]) -> PostgresParameters {
        var parameters = PostgresParameters()
        parameters.append(PostgresArray(grants.map(\.privilege)))
        parameters.append(PostgresArray(grants.map(\.kind.rawValue)))
        parameters.append(PostgresArray(grants.map(\.object)))
        parameters.append(PostgresArray(grants.map(\.column)))
        return parameters
    }

    /// Result, one row: `attributes`, `memberships`, `writable`, `readable`, `creates` text[], `inherits`,
    /// `is_dispatcher` bool. What follows from being a superuser is not listed. Tables of extensions do not count:
    /// those that show statistics are everybody's.
    static let role = PostgresStatement(
        "role_rights",
        """
        WITH self AS (
            SELECT bool_or(r.rolsuper) AS is_super, bool_or(r.rolbypassrls) AS bypasses,
                bool_or(r.rolcreaterole) AS makes_roles, bool_or(r.rolcreatedb) AS makes_databases,
                bool_or(r.rolreplication) AS replicates
            FROM pg_catalog.pg_roles r
            WHERE r.rolname IN (SESSION_USER, CURRENT_USER)
        ),
        others AS (
            SELECT r.oid, r.rolname::text AS name
            FROM pg_catalog.pg_roles r
            WHERE r.rolname ~ '^(postbell|pg)_' AND r.rolname <> 'postbell_dispatcher'
                AND r.rolname NOT IN (SESSION_USER, CURRENT_USER) AND NOT r.rolcanlogin
                AND pg_has_role(SESSION_USER, r.oid, 'MEMBER')
        ),
        tables AS (
            SELECT format('%I.%I', n.nspname, c.relname) AS name,
                has_any_column_privilege(c.oid, 'INSERT, UPDATE')
                    OR has_table_privilege(c.oid, 'DELETE, TRUNCATE') AS is_writable,
                has_any_column_privilege(c.oid, 'SELECT') AS is_readable
            FROM pg_catalog.pg_class c
            JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
                AND n.nspname NOT IN ('postbell', 'pg_catalog', 'information_schema')
                AND n.nspname NOT LIKE 'pg\\_toast%' AND n.nspname NOT LIKE 'pg\\_temp%'
                AND has_schema_privilege(n.oid, 'USAGE')
                AND NOT EXISTS (
                    SELECT FROM pg_catalog.pg_depend d
                    WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
        )
        SELECT
            array_remove(ARRAY[
                CASE WHEN s.is_super THEN 'SUPERUSER' END,
                CASE WHEN s.bypasses AND NOT s.is_super THEN 'BYPASSRLS' END,
                CASE WHEN s.makes_roles AND NOT s.is_super THEN 'CREATEROLE' END,
                CASE WHEN s.replicates AND NOT s.is_super THEN 'REPLICATION' END,
                CASE WHEN s.makes_databases AND NOT s.is_super THEN 'CREATEDB' END], NULL) AS attributes,
            ARRAY(
                -- not those that come with another one
                SELECT o.name FROM others o
                WHERE NOT s.is_super AND NOT EXISTS (
                    SELECT FROM others x WHERE x.oid <> o.oid AND pg_has_role(x.oid, o.oid, 'MEMBER'))
                ORDER BY 1) AS memberships,
            ARRAY(
                SELECT t.name FROM tables t WHERE NOT s.is_super AND t.is_writable
                ORDER BY 1 LIMIT \(RoleRights.listLimit)) AS writable,
            ARRAY(
                SELECT t.name FROM tables t WHERE NOT s.is_super AND t.is_readable AND NOT t.is_writable
                ORDER BY 1 LIMIT \(RoleRights.listLimit)) AS readable,
            ARRAY(
                SELECT format('DATABASE %I', current_database())
                WHERE NOT s.is_super AND has_database_privilege(current_database(), 'CREATE')
                UNION ALL
                SELECT format('SCHEMA %I', n.nspname) FROM pg_catalog.pg_namespace n
                WHERE NOT s.is_super AND n.nspname <> 'postbell' AND n.nspname NOT LIKE 'pg\\_%'
                    AND has_schema_privilege(n.oid, 'CREATE')
                ORDER BY 1) AS creates,
            pg_has_role('postbell_dispatcher', 'USAGE') AS inherits,
            pg_has_role(SESSION_USER, 'postbell_dispatcher', 'MEMBER') AS is_dispatcher
        FROM self s
        """)
}

/// The app of a conformance run: the functions that are its hooks, and the one row they answer from.
enum HookedAppSchema {
    private static let arguments =
        "ids uuid[], tenants text[], principals text[], subjects text[], payloads jsonb[]"

    /// Makes it, as its own role; the role may be there from another test.
    static var sql: String {
        """
        DO $$ BEGIN CREATE ROLE hook_app; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
        CREATE SCHEMA app AUTHORIZATION hook_app;
        GRANT USAGE ON SCHEMA app TO postbell_dispatcher;
        CREATE TABLE app.state (over text, barred text, raises text, mixes_up text);
        INSERT INTO app.state DEFAULT VALUES;
        ALTER TABLE app.state OWNER TO hook_app;
        SET ROLE hook_app;
        \(function("stale", "u.subject = s.over"))
        \(function("access", "u.principal IS DISTINCT FROM s.barred"))
        RESET ROLE
        """
    }

    private static func function(_ name: String, _ answers: String) -> String {
        """
        CREATE FUNCTION app.\(name)(\(arguments)) RETURNS SETOF uuid
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        BEGIN
            IF EXISTS (SELECT FROM app.state s WHERE s.raises = '\(name)') THEN
                RAISE 'no';
            END IF;
            RETURN QUERY
            SELECT u.id
            FROM app.state s, unnest(ids, principals, subjects) u(id, principal, subject)
            WHERE \(answers)
            UNION ALL
            SELECT gen_random_uuid() FROM app.state s WHERE s.mixes_up = '\(name)';
        END $$;
        REVOKE ALL ON FUNCTION app.\(name)(\(arguments)) FROM PUBLIC;
        GRANT EXECUTE ON FUNCTION app.\(name)(\(arguments)) TO postbell_dispatcher;
        """
    }
}

-- Postbell 0015: codes of publishers, and the mapping that apps render them from (docs/kinds.md).
--
-- Locks: none on existing tables; everything here is new.
-- Older workers: may run on; nothing they read changes.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

-- What a kind of codes has to be beyond what every kind has; called by content_fault.
CREATE FUNCTION postbell.code_fault(content jsonb, keys jsonb, lacks_extension boolean) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    code text;
BEGIN
    SELECT min(k.key) INTO code FROM jsonb_each(keys) k
    WHERE k.value ->> 'type' = 'code' AND (k.value ->> 'required')::boolean;
    IF code IS NULL OR EXISTS (
            SELECT 1 FROM jsonb_each(keys) k
            WHERE k.key <> code AND k.value ->> 'type' NOT IN ('int', 'uuid', 'bool')) THEN
        RETURN 'a kind of codes has one required key of type code, and beside it int, uuid and bool only';
    END IF;
    IF content ? 'form' THEN
        RETURN 'form does not go with codes';
    END IF;
    IF NOT content ? 'data'
            OR NOT postbell.uses_own_value(content - 'fcm', 'mapping')
            OR NOT EXISTS (
                SELECT 1 FROM jsonb_each(content -> 'data') d WHERE d.value #>> '{}' = '{' || code || '}') THEN
        RETURN 'data of a kind of codes must hold the code and {$mapping}';
    END IF;
    IF lacks_extension THEN
        RETURN 'an alert of a kind of codes needs mutable_content, so that the app can put the code into words';
    END IF;
    RETURN NULL;
END
$$;

-- Whose codes are whose: the namespace follows from the role that installs.
CREATE TABLE postbell.namespaces (
    role_name   name        PRIMARY KEY,
    namespace   text        NOT NULL UNIQUE,
    assigned_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    assigned_by text        NOT NULL DEFAULT SESSION_USER
);

-- What a code means. Not asked by anything that enqueues or sends: producers may run ahead of it.
CREATE TABLE postbell.codes (
    namespace    text        NOT NULL,
    key          text        NOT NULL,
    title        text        NOT NULL,
    body         text,
    target       text,
    route        text,
    thread       text,
    installed_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    installed_by text        NOT NULL DEFAULT SESSION_USER,
    PRIMARY KEY (namespace, key)
);

-- Gives a role its namespace, `publisher/app`; null takes it away, and its codes with it.
CREATE FUNCTION postbell.assign_namespace(role name, namespace text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles r WHERE r.rolname = assign_namespace.role) THEN
        PERFORM postbell.refuse('code.invalid', 'there is no such role');
    END IF;
    IF assign_namespace.namespace !~ '^[a-z0-9._-]{1,64}/[a-z0-9._-]{1,64}$' THEN
        PERFORM postbell.refuse('code.invalid', 'a namespace is publisher/app, each 1 to 64 of a-z, 0-9, _ . -');
    END IF;
    IF EXISTS (
            SELECT 1 FROM postbell.namespaces n
            WHERE n.namespace = assign_namespace.namespace AND n.role_name <> assign_namespace.role) THEN
        PERFORM postbell.refuse('code.invalid', 'the namespace is another role''s');
    END IF;
    DELETE FROM postbell.codes c
    USING postbell.namespaces n
    WHERE n.role_name = assign_namespace.role
        AND c.namespace = n.namespace
        AND n.namespace IS DISTINCT FROM assign_namespace.namespace;
    DELETE FROM postbell.namespaces n
    WHERE n.role_name = assign_namespace.role AND n.namespace IS DISTINCT FROM assign_namespace.namespace;
    IF assign_namespace.namespace IS NOT NULL THEN
        INSERT INTO postbell.namespaces (role_name, namespace)
        VALUES (assign_namespace.role, assign_namespace.namespace)
        ON CONFLICT (role_name) DO NOTHING;
    END IF;
END
$$;

-- The namespace of whoever calls: the role of the session, not that of the function that asks. Raises where there is
-- none.
CREATE FUNCTION postbell.own_namespace() RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_one text;
BEGIN
    SELECT n.namespace INTO found_one
    FROM postbell.namespaces n
    WHERE n.role_name = coalesce(nullif(current_setting('role'), 'none'), SESSION_USER)::name;
    IF found_one IS NULL THEN
        PERFORM postbell.refuse('code.not_permitted', 'this role has no namespace for codes');
    END IF;
    RETURN found_one;
END
$$;

-- The fault of a set of codes; null when there is none.
CREATE FUNCTION postbell.codes_fault(codes jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    entry record;
BEGIN
    IF jsonb_typeof(codes) IS DISTINCT FROM 'object' THEN
        RETURN 'codes are an object of key to entry';
    END IF;
    IF (SELECT count(*) FROM jsonb_object_keys(codes)) > 10000 THEN
        RETURN 'a namespace has at most 10000 codes';
    END IF;
    FOR entry IN SELECT c.key, c.value FROM jsonb_each(codes) c LOOP
        -- no colon and no slash: a key cannot name a namespace
        IF entry.key !~ '^[A-Za-z0-9._-]{1,64}$' THEN
            RETURN 'a code''s key is 1 to 64 of a-z, A-Z, 0-9, _ . -';
        END IF;
        IF jsonb_typeof(entry.value) <> 'object' OR NOT entry.value ? 'title'
                OR EXISTS (
                    SELECT 1 FROM jsonb_each(entry.value) m
                    WHERE m.key NOT IN ('title', 'body', 'target', 'route', 'thread')
                        OR jsonb_typeof(m.value) <> 'string'
                        OR char_length(m.value #>> '{}') NOT BETWEEN 1 AND 500) THEN
            RETURN 'code "' || entry.key || '" has a title, and may have body, target, route and thread, each a text of'
                || ' 1 to 500 characters, and nothing else';
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;

-- Makes these the codes of the caller's namespace: key to entry. Answers how many it has now; idempotent.
CREATE FUNCTION postbell.install_codes(codes jsonb) RETURNS int
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    own   text := postbell.own_namespace();
    fault text := postbell.codes_fault(install_codes.codes);
BEGIN
    IF fault IS NOT NULL THEN
        PERFORM postbell.refuse('code.invalid', fault);
    END IF;
    -- two installers of one namespace, one after the other
    PERFORM pg_advisory_xact_lock(hashtextextended('postbell.codes ' || own, 0));
    DELETE FROM postbell.codes c WHERE c.namespace = own AND NOT install_codes.codes ? c.key;
    INSERT INTO postbell.codes AS c (namespace, key, title, body, target, route, thread)
    SELECT own, e.key, e.value ->> 'title', e.value ->> 'body', e.value ->> 'target', e.value ->> 'route',
        e.value ->> 'thread'
    FROM jsonb_each(install_codes.codes) e
    ON CONFLICT (namespace, key) DO UPDATE SET
        title = excluded.title,
        body = excluded.body,
        target = excluded.target,
        route = excluded.route,
        thread = excluded.thread,
        installed_at = excluded.installed_at,
        installed_by = excluded.installed_by
    WHERE (c.title, c.body, c.target, c.route, c.thread)
        IS DISTINCT FROM (excluded.title, excluded.body, excluded.target, excluded.route, excluded.thread);
    RETURN (SELECT count(*) FROM postbell.codes c WHERE c.namespace = own);
END
$$;

-- Takes all codes of the caller's namespace away. Answers how many there were.
CREATE FUNCTION postbell.uninstall_codes() RETURNS int
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own  text := postbell.own_namespace();
    gone int;
BEGIN
    DELETE FROM postbell.codes c WHERE c.namespace = own;
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END
$$;

-- One entry as apps get it: members in this order, what is absent left out. The text is what is hashed.
CREATE FUNCTION postbell.code_entry(entry postbell.codes) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT '{' || pg_catalog.concat_ws(',',
        '"title":' || pg_catalog.to_json(entry.title)::text,
        '"body":' || pg_catalog.to_json(entry.body)::text,
        '"target":' || pg_catalog.to_json(entry.target)::text,
        '"route":' || pg_catalog.to_json(entry.route)::text,
        '"thread":' || pg_catalog.to_json(entry.thread)::text) || '}'
$$;

-- All entries, sorted by the bytes of their codes.
CREATE FUNCTION postbell.mapping_entries() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT '{' || coalesce(string_agg(
        to_json(c.namespace || ':' || c.key)::text || ':' || postbell.code_entry(c), ','
        ORDER BY (c.namespace || ':' || c.key) COLLATE "C"), '') || '}'
    FROM postbell.codes c
$$;

-- The version of the mapping: the same wherever the same codes are installed.
CREATE FUNCTION postbell.mapping_version() RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT left(encode(sha256(convert_to(postbell.mapping_entries(), 'UTF8')), 'hex'), 16)
$$;

-- The mapping as apps fetch it: {"version": …, "entries": {code: entry}}.
CREATE FUNCTION postbell.mapping() RETURNS json
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT ('{"version":"' || left(encode(sha256(convert_to(m.entries, 'UTF8')), 'hex'), 16)
        || '","entries":' || m.entries || '}')::json
    FROM postbell.mapping_entries() m(entries)
$$;

REVOKE ALL ON postbell.namespaces, postbell.codes FROM PUBLIC;
REVOKE ALL ON FUNCTION
    postbell.code_fault(jsonb, jsonb, boolean),
    postbell.assign_namespace(name, text),
    postbell.own_namespace(),
    postbell.codes_fault(jsonb),
    postbell.install_codes(jsonb),
    postbell.uninstall_codes(),
    postbell.code_entry(postbell.codes),
    postbell.mapping_entries(),
    postbell.mapping_version(),
    postbell.mapping()
FROM PUBLIC;
GRANT SELECT ON postbell.namespaces, postbell.codes TO postbell_reader;
-- A namespace of its own is what a producer needs beside this.
GRANT EXECUTE ON FUNCTION
    postbell.install_codes(jsonb),
    postbell.uninstall_codes()
TO postbell_producer;
GRANT EXECUTE ON FUNCTION
    postbell.mapping_entries(),
    postbell.mapping_version(),
    postbell.mapping()
TO postbell_producer, postbell_registrar, postbell_dispatcher, postbell_reader;

RESET ROLE;

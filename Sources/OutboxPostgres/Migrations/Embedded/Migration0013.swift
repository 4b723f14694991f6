// swift-format-ignore-file
// Written by scripts/embed-migrations from sql/migrations; not edited by hand.

extension Migration {
    /// 0013_visible_text.sql
    static let visibletext0013 = Migration(
        version: 13, name: "visible_text",
        checksum: "2e81149e986c416c67629394a4027508b6741c5c866ebeee5dde27b24417ab9b",
        sql: #"""
-- Postbell 0013: texts that people wrote (docs/kinds.md): what is stored is safe to show already. And how large the
-- notifications of a kind can get.
--
-- Locks: SHARE ROW EXCLUSIVE on kinds while its triggers are made.
-- Older workers: may run on; nothing they read changes.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

-- The text as one line without what cannot be seen: controls and default-ignorable code points go (Unicode 15.1; the
-- two selectors between the forms of an emoji stay), runs of white space become one space.
CREATE FUNCTION postbell.visible_text(value text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT btrim(regexp_replace(regexp_replace(
        value,
        '[\u0001-\u0008\u000e-\u001f\u007f-\u0084\u0086-\u009f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f'
            || '\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f'
            || '\u2800\u3164\ufe00-\ufe0d\ufeff'
            || '\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a'
            || '\U000e0000-\U000e0fff]',
        '', 'g'),
        '[\u0009-\u000d\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+', ' ', 'g'))
$$;

-- Does the text look as if a credential stood in it? Errs on the side of yes: a text that is refused is replaced. Each
-- search with bounded repetitions, which costs more than all others together, stands behind a cheap one that everything
-- it could find has to pass, and that most texts do not.
CREATE FUNCTION postbell.holds_credential(value text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT
        value COLLATE "C" ~ '-----BEGIN |GOCSPX-|hooks\.slack\.com/services/'
        -- what begins with a mark of its own
        OR value COLLATE "C" ~ (
            'eyJ|A[KS]IA|AIza|ya29\.|gh[opsru]_|github_pat_|glpat-|npm_|pypi-|hf_|xox|xapp-|[spr]k[-_]|whsec_')
        AND value COLLATE "C" ~ (
            -- JSON web tokens
            'eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}'
            -- Amazon, Google
            || '|(AKIA|ASIA)[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{30}|ya29\.[A-Za-z0-9_-]{10}'
            -- GitHub, GitLab, npm, PyPI, Hugging Face
            || '|gh[opsru]_[A-Za-z0-9]{20}|github_pat_[A-Za-z0-9_]{20}|glpat-[A-Za-z0-9_-]{16}|npm_[A-Za-z0-9]{30}'
            || '|pypi-[A-Za-z0-9_-]{16}|hf_[A-Za-z0-9]{20}'
            -- Slack
            || '|xox[abeoprs]-[A-Za-z0-9-]{10}|xapp-[A-Za-z0-9-]{10}'
            -- OpenAI, Anthropic, Stripe and who copied their form
            || '|\m(sk|pk|rk)[-_][A-Za-z0-9_-]{16}|whsec_[A-Za-z0-9]{16}')
        -- long and without a space: digests and keys, Telegram's tokens, and what is of all kinds of letters
        OR value COLLATE "C" ~ '[A-Za-z0-9+/_=-]{32}'
        AND value COLLATE "C" ~ (
            '[0-9a-fA-F]{32}|[0-9]{8,10}:[A-Za-z0-9_-]{35}'
            || '|(?=[A-Za-z0-9+/_=-]*[0-9])(?=[A-Za-z0-9+/_=-]*[a-z])(?=[A-Za-z0-9+/_=-]*[A-Z])[A-Za-z0-9+/_=-]{40}')
        -- a name and a password in an address
        OR value COLLATE "C" ~ '@' AND value COLLATE "C" ~ '[a-z][a-z0-9+.-]*://[^/ :@]*:[^/ @]+@'
        -- a word that says what follows it
        OR value COLLATE "C" ~* 'bearer|basic' AND value COLLATE "C" ~* '\m(bearer|basic) +[a-z0-9._~+/=-]{12}'
        OR value COLLATE "C" ~ '[:=]'
        AND value COLLATE "C" ~* (
            '(password|passwd|passphrase|passcode|secret|token|api[ _-]?key|access[ _-]?key|private[ _-]?key'
            || '|credentials?|authorization)["'']? *[:=] *["'']?[^ "'']{4}')
$$;

-- The text as it is stored: cut to so many code points, or its replacement when it is empty or looks like a credential,
-- as it came or as it would be shown, look-alike forms of letters among it. Null: refused, and there is no replacement.
-- In PL/pgSQL, which keeps the plan from call to call.
CREATE FUNCTION postbell.safe_text(value text, length int, replacement text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    shown  text := postbell.visible_text(value);
    folded text := normalize(shown, NFKC);
BEGIN
    IF shown = ''
            OR postbell.holds_credential(value)
            OR shown <> value AND postbell.holds_credential(shown)
            OR folded <> shown AND postbell.holds_credential(folded) THEN
        RETURN replacement;
    END IF;
    RETURN CASE
        WHEN char_length(shown) <= length THEN shown
        ELSE rtrim(left(shown, length - 1)) || chr(8230)
    END;
END
$$;

-- The payload with its visible texts made safe; refuses one that is not and has no replacement. Everything else stays
-- as it is and where it is, a key that is there twice too: what is at fault with it is for the trigger to say.
CREATE FUNCTION postbell.safe_payload(kind text, payload text, visible jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    made record;
BEGIN
    IF payload <> postbell.bounded_payload(payload, '') OR NOT postbell.is_json_object(payload) THEN
        RETURN payload;
    END IF;
    SELECT
        '{' || coalesce(string_agg(
            to_json(e.key)::text || ':' || coalesce(to_json(s.safe)::text, e.value::text), ',' ORDER BY e.place), '')
            || '}' AS payload,
        min(e.key) FILTER (WHERE s.is_text AND s.safe IS NULL) AS refused
    INTO made
    FROM json_each(payload::json) WITH ORDINALITY e(key, value, place)
    CROSS JOIN LATERAL (
        SELECT t.is_text, CASE WHEN t.is_text THEN postbell.safe_text(
            e.value #>> '{}', (visible -> e.key ->> 'length')::int, visible -> e.key ->> 'replacement') END AS safe
        FROM (SELECT visible ? e.key AND json_typeof(e.value) = 'string' AS is_text) t
    ) s;
    IF made.refused IS NOT NULL THEN
        PERFORM postbell.refuse(
            'notification.visible_text',
            'kind "' || kind || '", key "' || made.refused || '" is empty or looks like a credential');
    END IF;
    RETURN made.payload;
END
$$;

-- What the insert trigger has to know of a kind's text keys; null when it has none.
CREATE FUNCTION postbell.visible_keys(content jsonb, keys jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_object_agg(k.key, jsonb_build_object(
        'length', k.value -> 'length', 'replacement', content -> 'visible' -> k.key))
    FROM jsonb_each(keys) k
    WHERE k.value ->> 'type' = 'text'
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- The owner's calls

-- Gives a tenant the instance id that its apps know it by. Notifications enqueued before keep the one they have.
CREATE FUNCTION postbell.set_instance(tenant text, instance text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF coalesce(set_instance.instance !~ '^[!-~]{1,64}$', true) THEN
        PERFORM postbell.refuse('notification.invalid', 'an instance id is 1 to 64 printable ASCII characters');
    END IF;
    UPDATE postbell.tenants t SET instance = set_instance.instance
    WHERE t.tenant_no = postbell.tenant_number(set_instance.tenant);
END
$$;

-- Notifications of these kinds that wait or are in flight.
CREATE FUNCTION postbell.open_of_kinds(kinds int[]) RETURNS SETOF uuid
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT n.id
    FROM (
        SELECT q.notification_id FROM postbell.queue q
        UNION SELECT i.id FROM postbell.leases l CROSS JOIN LATERAL unnest(l.ids) i(id)
    ) w
    JOIN postbell.outbox n ON n.id = w.notification_id
    WHERE n.kind_no = ANY (kinds)
$$;

-- Takes a kind out of the catalog; false when it is not in it. Its revisions stay, so that a row which a transaction
-- inserted meanwhile still renders.
CREATE FUNCTION postbell.drop_kind(name text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    revisions int[];
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('postbell.kind ' || drop_kind.name, 0));
    revisions := ARRAY(SELECT k.kind_no FROM postbell.kinds k WHERE k.name = drop_kind.name);
    IF EXISTS (SELECT 1 FROM postbell.open_of_kinds(revisions)) THEN
        PERFORM postbell.refuse('kind.in_use', 'notifications of it are open');
    END IF;
    UPDATE postbell.kinds k SET current = false WHERE k.name = drop_kind.name AND k.current;
    RETURN FOUND;
END
$$;

-- A revision that open rows render by cannot be deleted either, by nobody.
CREATE FUNCTION postbell.kinds_keep_open() RETURNS trigger
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM postbell.open_of_kinds(ARRAY(SELECT o.kind_no FROM old_rows o))) THEN
        PERFORM postbell.refuse('kind.in_use', 'notifications of it are open');
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER kinds_keep_open
    AFTER DELETE ON postbell.kinds
    REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT
    EXECUTE FUNCTION postbell.kinds_keep_open();

-- ---------------------------------------------------------------------------------------------------------------------
-- Sizes

-- Most bytes of a payload value as JSON, a string without its quotes. As it is usually written: white space in a list,
-- and escapes that no character needs, are the producer's own.
CREATE FUNCTION postbell.value_bytes(declared jsonb) RETURNS int
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE declared ->> 'type'
        WHEN 'uuid' THEN 36
        WHEN 'int' THEN 19
        WHEN 'bool' THEN 5
        WHEN 'slug' THEN 100
        WHEN 'code' THEN 200
        WHEN 'timestamp' THEN 35
        WHEN 'enum' THEN (SELECT max(length(v)) FROM jsonb_array_elements_text(declared -> 'values') v)
        WHEN 'text' THEN (declared ->> 'length')::int * 4
        WHEN 'uuids' THEN (declared ->> 'length')::int * 39 + 1
    END
$$;

-- Most bytes that a text comes to, as it stands in the body of a push: its longest variant with the longest values, or
-- labels in their place. With the arguments of a key, and the name of their list.
CREATE FUNCTION postbell.largest_text(presentation text, value jsonb, keys jsonb, labels jsonb) RETURNS int
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    leaf text := value #>> '{}';
BEGIN
    IF jsonb_typeof(value) = 'object' THEN
        RETURN (
            SELECT max(postbell.largest_text(presentation, v.variant, keys, labels))
            FROM (
                SELECT c.value AS variant FROM jsonb_each(value -> 'cases') c
                UNION ALL SELECT value -> 'absent' WHERE value ? 'absent'
                UNION ALL SELECT value -> 'else' WHERE value ? 'else'
            ) v);
    END IF;
    IF presentation = 'localized' AND leaf ~ '\(' THEN
        -- {"title-loc-args":["…","…"]}; the longest name is that of the subtitle
        RETURN octet_length(regexp_replace(leaf, '\(.*$', '')) + 24 + (
            SELECT sum(3 + postbell.value_bytes(keys -> a))
            FROM unnest(string_to_array(substring(leaf FROM '\((.*)\)$'), ',')) a);
    END IF;
    RETURN postbell.text_bytes(presentation, value) + coalesce((
        SELECT sum(coalesce(
            (SELECT max(octet_length(l.value::text)) - 2 FROM jsonb_each(labels -> m[1]) l),
            postbell.value_bytes(keys -> m[1])))
        FROM regexp_matches(replace(replace(leaf, '{{', ''), '}}', ''), '\{([^{}]+)\}', 'g') m), 0);
END
$$;

-- Most bytes of a dictionary: with quotes, colons and commas as a part of a body for APNs, without them as FCM counts.
-- `texts` has the most bytes of title, subtitle and body. Ids of producers count as 200 bytes, an instance id as 64.
CREATE FUNCTION postbell.largest_members(members jsonb, keys jsonb, texts jsonb, is_fcm boolean) RETURNS int
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(sum(octet_length(m.key) + CASE
        WHEN NOT is_fcm THEN 4 + v.bytes + CASE WHEN v.is_bare THEN 0 ELSE 2 END
        -- one of Postbell's own names is sent as payload.NAME
        WHEN m.key IN (
            'notification_id', 'title', 'subtitle', 'body', 'title_loc_key', 'title_loc_args', 'subtitle_loc_key',
            'subtitle_loc_args', 'body_loc_key', 'body_loc_args', 'badge', 'sound', 'thread', 'category', 'silent',
            'tag') THEN 8 + v.bytes
        ELSE v.bytes
    END - CASE
        -- a list is its ids with commas between them
        WHEN is_fcm AND keys -> u.name ->> 'type' = 'uuids' THEN 2 + 2 * (keys -> u.name ->> 'length')::int
        ELSE 0
    END), 0)::int
    FROM jsonb_each(members) m
    CROSS JOIN LATERAL (SELECT substring(m.value #>> '{}' FROM '^\{([^{}]+)\}$') AS name) u
    CROSS JOIN LATERAL (
        SELECT
            u.name IS NULL AND jsonb_typeof(m.value) <> 'string' OR u.name IN ('$badge', '$silent')
                OR coalesce(keys -> u.name ->> 'type' IN ('int', 'bool', 'uuids'), false) AS is_bare,
            coalesce(
                postbell.value_bytes(keys -> u.name),
                (texts ->> u.name)::int,
                CASE u.name
                    WHEN '$id' THEN 36
                    WHEN '$thread' THEN 200
                    WHEN '$instance' THEN 64
                    WHEN '$mapping' THEN 16
                    WHEN '$badge' THEN 11
                    WHEN '$silent' THEN 1
                END,
                octet_length(m.value #>> '{}')) AS bytes
    ) v
$$;

-- Most bytes that notifications of a kind come to: the body for APNs, and keys and values of `data` for FCM. Null for
-- raw kinds, of which nothing is known. At most a few dozen too many, never too few (KindSizeTests).
CREATE FUNCTION postbell.largest_bytes(kind postbell.kinds, OUT apns int, OUT fcm int)
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    texts   jsonb;
    visible int;
    members jsonb := kind.content -> 'data';
BEGIN
    IF kind.presentation = 'raw' THEN
        RETURN;
    END IF;
    SELECT
        jsonb_object_agg('$' || t.name, t.bytes),
        sum(t.bytes + CASE
            WHEN t.bytes = 0 THEN 0
            WHEN kind.presentation = 'localized' THEN length(t.name) + 14
            ELSE length(t.name) + 6
        END)
    INTO texts, visible
    FROM (
        SELECT n.name, coalesce(postbell.largest_text(
            kind.presentation, kind.content -> n.name, kind.payload_keys, kind.content -> 'labels'), 0) AS bytes
        FROM unnest(ARRAY['title', 'subtitle', 'body']) n(name)
    ) t;
    visible := visible
        + CASE WHEN kind.group_by_thread THEN 215 ELSE 0 END
        + coalesce(octet_length(to_json(kind.sound)::text) + 9, 0)
        + coalesce(octet_length(to_json(kind.category)::text) + 12, 0);
    IF members IS NULL THEN
        SELECT coalesce(jsonb_object_agg(k.key, '{' || k.key || '}'), '{}') INTO members
        FROM jsonb_each(kind.payload_keys) k
        WHERE k.value ->> 'type' <> 'text';
    END IF;
    apns := CASE
        WHEN kind.content ? 'form' THEN 28
        ELSE
            -- {"aps":{"alert":{…},"badge":-2147483648,"interruption-level":"…","mutable-content":1},"container":{…}}
            CASE
                WHEN kind.push_type IN ('alert', 'voip') THEN
                    85 + visible + greatest(length(kind.interruption_level), 7)
                ELSE 35
            END
            + coalesce(octet_length(kind.content ->> 'container') + 6, 0)
            + postbell.largest_members(members, kind.payload_keys, texts, false)
    END;
    fcm := CASE
        WHEN kind.content ? 'fcm' THEN
            postbell.largest_members(kind.content -> 'fcm', kind.payload_keys, texts, true)
        WHEN kind.content ? 'form' THEN 67
        -- notification_id, silent and tag; badge
        ELSE 51 + 7 + 203 + CASE kind.push_type WHEN 'background' THEN 0 ELSE visible + 16 END
            + postbell.largest_members(members, kind.payload_keys, texts, true)
    END;
END
$$;

-- What is to be said of a kind that can come to more than its providers take; null when it cannot.
CREATE FUNCTION postbell.size_warning(kind postbell.kinds) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT string_agg(l.bytes || ' bytes for ' || l.provider || ', which takes ' || l.most, ', and ')
    FROM postbell.largest_bytes(kind) b
    CROSS JOIN LATERAL (VALUES
        ('APNs', b.apns, CASE kind.push_type WHEN 'voip' THEN 5120 ELSE 4096 END),
        ('FCM', b.fcm, 4096)
    ) l(provider, bytes, most)
    WHERE l.bytes > l.most
$$;

-- A kind is not refused for it: the longest values are rare, and each body is measured before it is sent.
CREATE FUNCTION postbell.kinds_warn_of_size() RETURNS trigger
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    warning text;
BEGIN
    BEGIN
        warning := postbell.size_warning(NEW);
    EXCEPTION WHEN data_exception THEN
        RETURN NULL;  -- not by define_kind, and of another form: what it is, workers say
    END;
    IF warning IS NOT NULL THEN
        RAISE WARNING USING MESSAGE = 'kind.size: kind "' || NEW.name || '" can come to ' || warning;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER kinds_warn_of_size
    AFTER INSERT ON postbell.kinds
    FOR EACH ROW
    EXECUTE FUNCTION postbell.kinds_warn_of_size();

REVOKE ALL ON FUNCTION
    postbell.visible_text(text),
    postbell.holds_credential(text),
    postbell.safe_text(text, int, text),
    postbell.safe_payload(text, text, jsonb),
    postbell.visible_keys(jsonb, jsonb),
    postbell.set_instance(text, text),
    postbell.open_of_kinds(int[]),
    postbell.drop_kind(text),
    postbell.kinds_keep_open(),
    postbell.value_bytes(jsonb),
    postbell.largest_text(text, jsonb, jsonb, jsonb),
    postbell.largest_members(jsonb, jsonb, jsonb, boolean),
    postbell.largest_bytes(postbell.kinds),
    postbell.size_warning(postbell.kinds),
    postbell.kinds_warn_of_size()
FROM PUBLIC;

RESET ROLE;
"""#)
}

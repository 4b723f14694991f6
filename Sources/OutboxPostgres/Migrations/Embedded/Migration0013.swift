// swift-format-ignore-file
// Written by scripts/embed-migrations from sql/migrations; not edited by hand.

extension Migration {
    /// 0013_visible_text.sql
    static let visibletext0013 = Migration(
        version: 13, name: "visible_text",
        checksum: "119f2a697d03fb9c52cd7828c2785d89b664053cb0dfa65e443f505642574149",
        sql: #"""
-- Postbell 0013: texts that people wrote (docs/kinds.md): what is stored is safe to show already.
--
-- Locks: SHARE ROW EXCLUSIVE on kinds while its trigger is made.
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

REVOKE ALL ON FUNCTION
    postbell.visible_text(text),
    postbell.holds_credential(text),
    postbell.safe_text(text, int, text),
    postbell.safe_payload(text, text, jsonb),
    postbell.visible_keys(jsonb, jsonb),
    postbell.set_instance(text, text),
    postbell.open_of_kinds(int[]),
    postbell.drop_kind(text),
    postbell.kinds_keep_open()
FROM PUBLIC;

RESET ROLE;
"""#)
}

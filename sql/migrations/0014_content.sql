-- Postbell 0014: the check of what a kind shows and carries (docs/kinds.md), and what goes with a push type.
--
-- Locks: none on existing tables.
-- Older workers: may run on; nothing they read changes.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

-- Each function answers the first fault that it finds, with its place, or null.

-- The fault of one text without variants.
CREATE FUNCTION postbell.leaf_fault(presentation text, place text, leaf text, keys jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    bare text := replace(replace(leaf, '{{', ''), '}}', '');
    used text;
BEGIN
    IF presentation = 'localized' THEN
        IF leaf !~ '^[A-Za-z0-9_.-]{1,100}(\([A-Za-z0-9_.-]+(,[A-Za-z0-9_.-]+)*\))?$' THEN
            RETURN place || ' is no key, nor KEY(argument,argument)';
        END IF;
        FOREACH used IN ARRAY coalesce(string_to_array(substring(leaf FROM '\((.*)\)$'), ','), '{}') LOOP
            IF coalesce(keys -> used ->> 'type' IN ('text', 'uuids'), true)
                    OR NOT (keys -> used ->> 'required')::boolean THEN
                RETURN place || ' has the argument "' || left(used, 64)
                    || '", which is no required key of one value without text';
            END IF;
        END LOOP;
        RETURN NULL;
    END IF;
    IF regexp_replace(bare, '\{[^{}]+\}', '', 'g') ~ '[{}]' THEN
        RETURN place || ' has a brace left open';
    END IF;
    FOR used IN SELECT m[1] FROM regexp_matches(bare, '\{([^{}]+)\}', 'g') m LOOP
        IF presentation = 'code' THEN
            RETURN place || ' stands for every code and takes no value';
        END IF;
        IF NOT keys ? used THEN
            RETURN place || ' uses the undeclared key "' || left(used, 64) || '"';
        END IF;
        IF keys -> used ->> 'type' = 'uuids' THEN
            RETURN place || ' uses the key "' || left(used, 64) || '", which is a list and is never shown';
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;

-- The fault of a text that may have variants.
CREATE FUNCTION postbell.text_fault(presentation text, place text, value jsonb, keys jsonb, depth int DEFAULT 0)
RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    declared jsonb;
    words    text[];
    fault    text;
    variant  record;
BEGIN
    IF jsonb_typeof(value) = 'string' THEN
        RETURN postbell.leaf_fault(presentation, place, value #>> '{}', keys);
    END IF;
    IF jsonb_typeof(value) <> 'object' OR presentation = 'code' THEN
        RETURN place || ' has the wrong type';
    END IF;
    IF depth = 3 THEN
        RETURN place || ' has variants of variants of variants of variants';
    END IF;
    SELECT min(k) INTO fault FROM jsonb_object_keys(value) k WHERE k NOT IN ('by', 'cases', 'absent', 'else');
    IF fault IS NOT NULL THEN
        RETURN place || ' has by, cases, absent and else, but not "' || left(fault, 64) || '"';
    END IF;
    declared := keys -> (value ->> 'by');
    IF declared IS NULL THEN
        RETURN place || '.by names no declared key';
    END IF;
    words := CASE declared ->> 'type'
        WHEN 'enum' THEN ARRAY(SELECT jsonb_array_elements_text(declared -> 'values'))
        WHEN 'bool' THEN ARRAY['true', 'false']
        ELSE '{}'
    END;
    IF value ? 'cases' THEN
        IF jsonb_typeof(value -> 'cases') <> 'object' THEN
            RETURN place || '.cases has the wrong type';
        END IF;
        FOR variant IN SELECT c.key, c.value FROM jsonb_each(value -> 'cases') c LOOP
            IF variant.key <> ALL (words) THEN
                RETURN place || '.cases has "' || left(variant.key, 64) || '", which is no word of its key';
            END IF;
            fault := postbell.text_fault(
                presentation, place || '.cases.' || variant.key, variant.value, keys, depth + 1);
            IF fault IS NOT NULL THEN
                RETURN fault;
            END IF;
        END LOOP;
    END IF;
    FOR variant IN SELECT c.key, c.value FROM jsonb_each(value) c WHERE c.key IN ('absent', 'else') LOOP
        fault := postbell.text_fault(presentation, place || '.' || variant.key, variant.value, keys, depth + 1);
        IF fault IS NOT NULL THEN
            RETURN fault;
        END IF;
    END LOOP;
    IF NOT value ? 'else' AND (
            words = '{}' OR NOT coalesce(value -> 'cases', '{}') ?& words
            OR NOT ((declared ->> 'required')::boolean OR value ? 'absent')) THEN
        RETURN place || ' leaves a value of its key without a text: it needs an else';
    END IF;
    RETURN NULL;
END
$$;

-- The fault of the labels of slugs and enum values.
CREATE FUNCTION postbell.labels_fault(labels jsonb, keys jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    entry record;
    named text;
BEGIN
    IF jsonb_typeof(labels) <> 'object' THEN
        RETURN 'labels has the wrong type';
    END IF;
    FOR entry IN SELECT l.key, l.value, keys -> l.key AS declared FROM jsonb_each(labels) l LOOP
        named := 'labels.' || left(entry.key, 64);
        IF NOT coalesce(entry.declared ->> 'type' IN ('slug', 'enum'), false) THEN
            RETURN named || ' is no declared slug or enum';
        END IF;
        IF jsonb_typeof(entry.value) <> 'object' THEN
            RETURN named || ' has the wrong type';
        END IF;
        IF NOT entry.value ? '*' THEN
            RETURN named || ' lacks "*", the label of all other values';
        END IF;
        IF (SELECT count(*) FROM jsonb_object_keys(entry.value)) > 500
                OR EXISTS (
                    SELECT 1 FROM jsonb_each(entry.value) w
                    WHERE jsonb_typeof(w.value) <> 'string' OR char_length(w.value #>> '{}') NOT BETWEEN 1 AND 100) THEN
            RETURN named || ' has at most 500 labels of 1 to 100 characters';
        END IF;
        SELECT min(w) INTO named FROM jsonb_object_keys(entry.value) w
        WHERE w <> '*' AND CASE entry.declared ->> 'type'
            WHEN 'enum' THEN NOT entry.declared -> 'values' ? w
            ELSE w !~ '^[a-z0-9._-]{1,100}$'
        END;
        IF named IS NOT NULL THEN
            RETURN 'labels.' || entry.key || ' has "' || left(named, 64) || '", which is no value of its key';
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;

-- The fault of the text keys and what is shown in their place.
CREATE FUNCTION postbell.visible_fault(presentation text, visible jsonb, keys jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    entry record;
    named text;
BEGIN
    IF jsonb_typeof(visible) <> 'object' THEN
        RETURN 'visible has the wrong type';
    END IF;
    SELECT min(k.key) INTO named FROM jsonb_each(keys) k
    WHERE k.value ->> 'type' = 'text' AND (presentation <> 'template' OR NOT visible ? k.key);
    IF named IS NOT NULL THEN
        RETURN 'the key "' || named || '" is text, which only a template shows, and only when visible names it';
    END IF;
    FOR entry IN SELECT v.key, v.value, keys -> v.key AS declared FROM jsonb_each(visible) v LOOP
        IF NOT coalesce(entry.declared ->> 'type' = 'text', false) THEN
            RETURN 'visible.' || left(entry.key, 64) || ' is no declared text';
        END IF;
        CONTINUE WHEN jsonb_typeof(entry.value) = 'null';
        IF jsonb_typeof(entry.value) <> 'string'
                OR postbell.safe_text(entry.value #>> '{}', (entry.declared ->> 'length')::int, '')
                    <> entry.value #>> '{}'
                OR entry.value #>> '{}' = '' THEN
            RETURN 'visible.' || entry.key || ' must be null, or a text that needs no replacement itself';
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;

-- Is this member of a dictionary the notification's own value of that name?
CREATE FUNCTION postbell.uses_own_value(content jsonb, name text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT EXISTS (
        SELECT 1
        FROM (VALUES (content -> 'data'), (content -> 'fcm')) m(members)
        CROSS JOIN LATERAL jsonb_each(m.members) e
        WHERE e.value #>> '{}' = '{$' || name || '}')
$$;

-- The fault of a dictionary.
CREATE FUNCTION postbell.members_fault(place text, members jsonb, keys jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    entry record;
    named text;
    used  text;
BEGIN
    IF jsonb_typeof(members) <> 'object' THEN
        RETURN place || ' has the wrong type';
    END IF;
    IF (SELECT count(*) FROM jsonb_object_keys(members)) > 32 THEN
        RETURN place || ' has at most 32 members';
    END IF;
    FOR entry IN SELECT m.key, m.value, m.value #>> '{}' AS content FROM jsonb_each(members) m LOOP
        named := place || '.' || left(entry.key, 64);
        IF entry.key !~ '^[A-Za-z][A-Za-z0-9_.-]{0,63}$' OR entry.key = 'aps' THEN
            RETURN named || ' is no name that a member can have';
        END IF;
        IF entry.key ~ '^(from$|message_type$|google|gcm)' THEN
            RETURN named || ' is reserved by FCM';
        END IF;
        CONTINUE WHEN jsonb_typeof(entry.value) = 'boolean';
        IF jsonb_typeof(entry.value) = 'number' THEN
            IF entry.content !~ '^-?[0-9]{1,18}$' THEN
                RETURN named || ' is no whole number';
            END IF;
            CONTINUE;
        END IF;
        IF jsonb_typeof(entry.value) <> 'string' OR char_length(entry.content) > 200 THEN
            RETURN named || ' is no number, boolean or text of at most 200 characters';
        END IF;
        used := substring(entry.content FROM '^\{([^{}]+)\}$');
        IF used IS NULL AND entry.content ~ '[{}]' THEN
            RETURN named || ' is neither a constant nor one value in braces';
        END IF;
        IF left(used, 1) = '$' THEN
            IF used NOT IN (
                    '$id', '$thread', '$instance', '$mapping', '$badge', '$silent', '$title', '$subtitle', '$body') THEN
                RETURN named || ' uses an unknown value of the notification';
            END IF;
        ELSIF NOT keys ? used THEN
            RETURN named || ' uses the undeclared key "' || left(used, 64) || '"';
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;

-- The fault of a kind's content. `lacks_extension`: an alert without mutable content.
CREATE FUNCTION postbell.content_fault(presentation text, content jsonb, keys jsonb, lacks_extension boolean)
RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    named   text;
    allowed text[] := '{title,subtitle,body,container,data,fcm}' || CASE presentation
        WHEN 'template' THEN '{form,labels,visible}'::text[]
        WHEN 'localized' THEN '{form}'
        WHEN 'code' THEN '{form}'
    END;
BEGIN
    IF presentation = 'raw' THEN
        RETURN NULL;
    END IF;
    IF jsonb_typeof(content) IS DISTINCT FROM 'object' THEN
        RETURN 'content is an object';
    END IF;
    SELECT min(k) INTO named FROM jsonb_object_keys(content) k WHERE k <> ALL (allowed);
    IF named IS NOT NULL THEN
        RETURN 'content of this presentation has no member "' || left(named, 64) || '"';
    END IF;
    IF content ? 'form' THEN
        IF content -> 'form' <> '"badge"' THEN
            RETURN 'form is "badge" or not there';
        END IF;
        IF (content - 'form' - 'fcm' <> '{}') THEN
            RETURN 'form "badge" goes with fcm and with nothing else';
        END IF;
    END IF;
    IF content ? 'container' AND NOT (
            jsonb_typeof(content -> 'container') = 'string'
            AND content ->> 'container' ~ '^[A-Za-z][A-Za-z0-9_.-]{0,63}$'
            AND content ->> 'container' <> 'aps') THEN
        RETURN 'container is a name of 1 to 64 of a-z, A-Z, 0-9, _ . - that begins with a letter, and not aps';
    END IF;
    RETURN coalesce(
        CASE WHEN content ? 'labels' THEN postbell.labels_fault(content -> 'labels', keys) END,
        postbell.visible_fault(presentation, coalesce(content -> 'visible', '{}'), keys),
        CASE WHEN content ? 'title' THEN postbell.text_fault(presentation, 'title', content -> 'title', keys) END,
        CASE WHEN content ? 'subtitle' THEN
            postbell.text_fault(presentation, 'subtitle', content -> 'subtitle', keys) END,
        CASE WHEN content ? 'body' THEN postbell.text_fault(presentation, 'body', content -> 'body', keys) END,
        CASE WHEN content ? 'data' THEN postbell.members_fault('data', content -> 'data', keys) END,
        CASE WHEN content ? 'fcm' THEN postbell.members_fault('fcm', content -> 'fcm', keys) END,
        CASE WHEN presentation = 'code' THEN postbell.code_fault(content, keys, lacks_extension) END);
END
$$;

-- Fewest bytes that a text comes to, as it stands in the body of a push: its shortest variant, no value, no label.
CREATE FUNCTION postbell.text_bytes(presentation text, value jsonb) RETURNS int
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    leaf text := value #>> '{}';
BEGIN
    IF jsonb_typeof(value) = 'object' THEN
        RETURN (
            SELECT min(postbell.text_bytes(presentation, v.variant))
            FROM (
                SELECT c.value AS variant FROM jsonb_each(value -> 'cases') c
                UNION ALL SELECT value -> 'absent' WHERE value ? 'absent'
                UNION ALL SELECT value -> 'else' WHERE value ? 'else'
            ) v);
    END IF;
    leaf := CASE presentation
        WHEN 'localized' THEN regexp_replace(leaf, '\(.*$', '')
        ELSE regexp_replace(regexp_replace(leaf, '\{\{|\}\}', '|', 'g'), '\{[^{}]+\}', '', 'g')
    END;
    RETURN coalesce(octet_length(to_json(leaf)::text) - 2, 0);
END
$$;

-- Fewest bytes of everything in a kind's content that is always the same.
CREATE FUNCTION postbell.content_bytes(presentation text, content jsonb) RETURNS int
LANGUAGE sql IMMUTABLE AS $$
    SELECT postbell.text_bytes(presentation, content -> 'title')
        + postbell.text_bytes(presentation, content -> 'subtitle')
        + postbell.text_bytes(presentation, content -> 'body')
        + coalesce(octet_length(content ->> 'container'), 0)
        + coalesce((
            SELECT sum(octet_length(d.key) + octet_length(d.value::text))::int
            FROM jsonb_each(content -> 'data') d
            WHERE d.value #>> '{}' !~ '^\{.*\}$'), 0)
$$;

-- The fault of a kind that combines push type, priority and content in a way that APNs does not take; null when there
-- is none. The worker judges every kind by the same table (APNSPushType), also one that came around define_kind, and a
-- test holds the two together. Forms: `alert` shows a text, `app` leaves it to the app what it shows (PushKit),
-- `background` and `data` show nothing, `raw` is a payload that no template can write.
CREATE FUNCTION postbell.push_type_fault(
    push_type text, priority int, presentation text, content jsonb, category text, sound text,
    interruption_level text, mutable_content boolean
) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN t.form IS NULL THEN 'APNs has no push type "' || left(push_type, 64) || '"'
        WHEN NOT coalesce(priority = ANY (t.priorities), false) THEN
            'push type ' || push_type || ' goes with priority ' || array_to_string(t.priorities, ' or ')
        WHEN presentation = 'raw' THEN NULL
        WHEN t.form = 'raw' THEN
            'push type ' || push_type || ' needs the presentation raw: no template can write its payload'
        WHEN content ? 'form' AND t.form <> 'alert' THEN 'form "badge" goes with push type alert'
        WHEN content ? 'form' AND (
                sound IS NOT NULL OR category IS NOT NULL OR interruption_level IS NOT NULL OR mutable_content) THEN
            'a badge alone is without sound, category, interruption level and mutable content'
        WHEN t.form = 'alert' AND NOT content ?| ARRAY['title', 'body', 'form'] THEN
            'an alert needs a title or a body'
        WHEN t.form IN ('background', 'data') AND (
                content ?| ARRAY['title', 'subtitle', 'body'] OR sound IS NOT NULL OR category IS NOT NULL
                OR interruption_level IS NOT NULL OR mutable_content) THEN
            'push type ' || push_type || ' shows nothing: without title, subtitle, body, sound, category,'
                || ' interruption level and mutable content'
        WHEN size.bytes > t.payload_limit THEN
            'its fixed texts have ' || size.bytes || ' bytes, push type ' || push_type || ' takes ' || t.payload_limit
                || ' for the whole payload'
    END
    FROM (
        SELECT postbell.content_bytes(presentation, content)
            + coalesce(octet_length(category), 0) + coalesce(octet_length(sound), 0) AS bytes
    ) size
    LEFT JOIN (VALUES
        ('alert', '{10,5,1}'::int[], 'alert', 4096),
        ('background', '{5}', 'background', 4096),
        ('voip', '{10,5,1}', 'app', 5120),
        ('complication', '{10,5,1}', 'data', 4096),
        ('fileprovider', '{10,5,1}', 'data', 4096),
        ('mdm', '{10,5,1}', 'raw', 4096),
        ('location', '{10,5}', 'data', 4096),
        ('liveactivity', '{10,5}', 'raw', 4096),
        ('pushtotalk', '{10,5,1}', 'data', 4096),
        ('widgets', '{10,5,1}', 'raw', 4096),
        ('controls', '{10,5,1}', 'raw', 4096)
    ) t(name, priorities, form, payload_limit) ON t.name = push_type
$$;

REVOKE ALL ON FUNCTION
    postbell.leaf_fault(text, text, text, jsonb),
    postbell.text_fault(text, text, jsonb, jsonb, int),
    postbell.labels_fault(jsonb, jsonb),
    postbell.visible_fault(text, jsonb, jsonb),
    postbell.uses_own_value(jsonb, text),
    postbell.members_fault(text, jsonb, jsonb),
    postbell.content_fault(text, jsonb, jsonb, boolean),
    postbell.text_bytes(text, jsonb),
    postbell.content_bytes(text, jsonb),
    postbell.push_type_fault(text, int, text, jsonb, text, text, text, boolean)
FROM PUBLIC;

RESET ROLE;

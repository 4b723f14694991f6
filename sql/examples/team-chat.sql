-- A team chat's own tables beside Postbell, for the catalog of that name: who is told of a message is decided here, and
-- whether they may still see it is asked again right before it is sent.
--
-- For a database to try things in, after the migrations and the catalog, as whoever applied the migrations, with
-- CREATEROLE:
--   psql -1 -v ON_ERROR_STOP=1 -f sql/examples/team-chat.sql

-- A role of the app owns its tables and functions; it may enqueue.
DO $$ BEGIN
    CREATE ROLE chat_app NOLOGIN;
    GRANT postbell_producer TO chat_app;
    GRANT chat_app TO CURRENT_USER;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;  -- of another database of this server
END $$;

CREATE SCHEMA chat AUTHORIZATION chat_app;
GRANT USAGE ON SCHEMA chat TO postbell_dispatcher, postbell_owner;
SET LOCAL ROLE chat_app;

CREATE TABLE chat.threads (
    id        uuid   PRIMARY KEY DEFAULT gen_random_uuid(),
    is_direct boolean NOT NULL DEFAULT false,
    last_seq  bigint NOT NULL DEFAULT 0
);
CREATE TABLE chat.members (
    thread_id uuid    NOT NULL REFERENCES chat.threads ON DELETE CASCADE,
    person    text    NOT NULL,
    level     text    NOT NULL DEFAULT 'mentions' CHECK (level IN ('all', 'mentions', 'mute')),
    -- quiet hours, as the app has worked them out
    is_quiet  boolean NOT NULL DEFAULT false,
    read_seq  bigint  NOT NULL DEFAULT 0,
    PRIMARY KEY (thread_id, person)
);
CREATE TABLE chat.messages (
    id        uuid   PRIMARY KEY DEFAULT gen_random_uuid(),
    thread_id uuid   NOT NULL REFERENCES chat.threads ON DELETE CASCADE,
    seq       bigint NOT NULL,
    author    text   NOT NULL,
    body      text   NOT NULL,
    mentions  text[] NOT NULL DEFAULT '{}',
    UNIQUE (thread_id, seq)
);

-- The number on a person's icon: threads with something unread that is addressed to them, or that they want all of.
CREATE FUNCTION chat.badge(person text) RETURNS int
LANGUAGE sql STABLE SET search_path = pg_catalog, chat, pg_temp AS $$
    SELECT count(*)::int
    FROM members m
    JOIN threads t ON t.id = m.thread_id
    WHERE m.person = badge.person
        AND t.last_seq > m.read_seq
        AND (m.level = 'all' OR t.is_direct OR EXISTS (
            SELECT 1 FROM messages x
            WHERE x.thread_id = t.id AND x.seq > m.read_seq AND badge.person = ANY (x.mentions)))
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- The back end: each function is one change and its notifications, in the caller's transaction

-- A message, told to its thread: the author hears nothing, who is muted neither, who is no member even if mentioned
-- neither. Key and subject name the person: a key is one notification, and reading ends that of who reads.
CREATE FUNCTION chat.post(thread uuid, author text, body text, mentions text[] DEFAULT '{}') RETURNS uuid
LANGUAGE plpgsql SET search_path = pg_catalog, chat, pg_temp AS $$
DECLARE
    written messages;
BEGIN
    WITH t AS (UPDATE threads SET last_seq = last_seq + 1 WHERE id = thread RETURNING id, last_seq)
    INSERT INTO messages AS m (thread_id, seq, author, body, mentions)
    SELECT t.id, t.last_seq, post.author, post.body, post.mentions FROM t
    RETURNING m.* INTO written;
    INSERT INTO postbell.outbox (
        kind, principal_id, dedupe_key, subject, thread, silent, badge, payload)
    SELECT k.kind, m.person, k.kind || ':' || written.id || ':' || m.person, 'thread:' || thread || ':' || m.person,
        thread, m.is_quiet, badge(m.person), jsonb_build_object('message_id', written.id)
    FROM members m
    JOIN threads t ON t.id = m.thread_id
    CROSS JOIN LATERAL (SELECT CASE
        WHEN m.level = 'mute' THEN NULL
        WHEN t.is_direct THEN 'dm'
        WHEN m.person = ANY (post.mentions) THEN 'mention'
        WHEN m.level = 'all' THEN 'message'
    END) k(kind)
    WHERE m.thread_id = thread AND m.person <> post.author AND k.kind IS NOT NULL
    ON CONFLICT DO NOTHING;
    RETURN written.id;
END
$$;

-- Reading on one device: what waits for this thread is over, and where the number drops, the others get it, with the
-- thread that leaves the drawer.
CREATE FUNCTION chat.read(person text, thread uuid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, chat, pg_temp AS $$
DECLARE
    before int := badge(person);
    read   bigint;
BEGIN
    UPDATE members m SET read_seq = t.last_seq
    FROM threads t
    WHERE t.id = thread AND m.thread_id = t.id AND m.person = read.person
    RETURNING m.read_seq INTO read;
    PERFORM postbell.supersede('default', 'thread:' || thread || ':' || person);
    IF badge(person) < before THEN
        INSERT INTO postbell.outbox (kind, principal_id, dedupe_key, badge, payload)
        VALUES ('sync', person, 'sync:' || thread || ':' || read || ':' || person, badge(person),
            jsonb_build_object('cleared', jsonb_build_array(thread)))
        ON CONFLICT DO NOTHING;
    END IF;
END
$$;

CREATE FUNCTION chat.leave(person text, thread uuid) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, chat, pg_temp AS $$
    DELETE FROM members m WHERE m.thread_id = thread AND m.person = leave.person
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- Hooks: asked right before sending

-- Which of these their principal may still see: that of threads they are members of.
CREATE FUNCTION chat.may_see(
    ids uuid[], tenants text[], principals text[], subjects text[], payloads jsonb[])
RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, chat, pg_temp AS $$
    SELECT n.id
    FROM unnest(ids, principals, subjects) n(id, person, subject)
    JOIN members m ON m.thread_id = split_part(n.subject, ':', 2)::uuid AND m.person = n.person
$$;

-- Which of these are over: of messages that were read or deleted.
CREATE FUNCTION chat.messages_over(
    ids uuid[], tenants text[], principals text[], subjects text[], payloads jsonb[])
RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, chat, pg_temp AS $$
    SELECT n.id
    FROM unnest(ids, principals, payloads) n(id, person, payload)
    LEFT JOIN messages x ON x.id = (n.payload ->> 'message_id')::uuid
    LEFT JOIN members m ON m.thread_id = x.thread_id AND m.person = n.person
    WHERE x.id IS NULL OR m.read_seq >= x.seq
$$;

REVOKE ALL ON FUNCTION chat.may_see, chat.messages_over FROM PUBLIC;
GRANT EXECUTE ON FUNCTION chat.may_see, chat.messages_over TO postbell_dispatcher;

SET LOCAL ROLE postbell_owner;
SELECT postbell.set_hook(kind, 'access', 'chat.may_see'::regproc)
FROM unnest('{message,mention,dm,run_done,run_failed,input_needed}'::text[]) kind;
SELECT postbell.set_hook(kind, 'stale', 'chat.messages_over'::regproc)
FROM unnest('{message,mention,dm}'::text[]) kind;
RESET ROLE;

-- The kinds of a team chat: eight that are shown, and one that sets the number on the icon.
--
-- No word of a conversation is in a push: keys into the app's language files, ids and numbers. The app's extension
-- fetches the text from its own server, as the person who reads it. The dictionary stands under `b`; on Android `fcm`
-- says all there is, key for key.
--
-- What producers give beside the payload (docs/kinds.md, sql/examples/team-chat.sql):
--   thread      the thread's id: groups on the device, and one push of a thread takes the place of the last
--   badge       the number on the icon, with every row, 0 too
--   silent      true in quiet hours: no sound, passive, priority 5
--   not_before  where a desktop is awake: after the delay; the end of a window in which messages are collected
--   subject     what ends it when it was read meanwhile
--
-- What is an hour old is not sent (max_age); a provider keeps it for a day (provider_ttl). To adapt: both, the
-- container, the keys. The instance id is the tenant's (postbell.set_instance). Idempotent: apply it again after a
-- change, in one transaction, as a member of postbell_owner:
--   psql -1 -v ON_ERROR_STOP=1 -f sql/catalogs/team-chat.sql

SET LOCAL ROLE postbell_owner;

SELECT postbell.define_kind('message', 'localized',
    payload => '{"message_id": "uuid!"}',
    content => '{"title": "PUSH_TITLE", "body": "PUSH_BODY_MESSAGE", "container": "b",
                 "data": {"v": 1, "nid": "{$id}", "k": "message", "i": "{$instance}",
                          "t": "{$thread}", "m": "{message_id}"},
                 "fcm": {"v": 1, "nid": "{$id}", "k": "message", "i": "{$instance}",
                         "t": "{$thread}", "m": "{message_id}", "badge": "{$badge}", "quiet": "{$silent}"}}',
    wait_for_device => '0', max_age => '1 h', provider_ttl => '24 h', retry => '2s..5m', collapse => 'thread',
    interruption_level => 'active', category => 'MESSAGE', sound => 'default', mutable_content => true);

SELECT postbell.define_kind('mention', 'localized',
    payload => '{"message_id": "uuid!"}',
    content => '{"title": "PUSH_TITLE", "body": "PUSH_BODY_MENTION", "container": "b",
                 "data": {"v": 1, "nid": "{$id}", "k": "mention", "i": "{$instance}",
                          "t": "{$thread}", "m": "{message_id}"},
                 "fcm": {"v": 1, "nid": "{$id}", "k": "mention", "i": "{$instance}",
                         "t": "{$thread}", "m": "{message_id}", "badge": "{$badge}", "quiet": "{$silent}"}}',
    wait_for_device => '0', max_age => '1 h', provider_ttl => '24 h', retry => '2s..5m', collapse => 'thread',
    interruption_level => 'active', category => 'MENTION', sound => 'default', mutable_content => true);

SELECT postbell.define_kind('dm', 'localized',
    payload => '{"message_id": "uuid!"}',
    content => '{"title": "PUSH_TITLE", "body": "PUSH_BODY_DM", "container": "b",
                 "data": {"v": 1, "nid": "{$id}", "k": "dm", "i": "{$instance}",
                          "t": "{$thread}", "m": "{message_id}"},
                 "fcm": {"v": 1, "nid": "{$id}", "k": "dm", "i": "{$instance}",
                         "t": "{$thread}", "m": "{message_id}", "badge": "{$badge}", "quiet": "{$silent}"}}',
    wait_for_device => '0', max_age => '1 h', provider_ttl => '24 h', retry => '2s..5m', collapse => 'thread',
    interruption_level => 'active', category => 'DM', sound => 'default', mutable_content => true);

-- A run points at the last message of its agent, where there is one.
SELECT postbell.define_kind('run_done', 'localized',
    payload => '{"message_id": "uuid?"}',
    content => '{"title": "PUSH_TITLE", "body": "PUSH_BODY_RUN_DONE", "container": "b",
                 "data": {"v": 1, "nid": "{$id}", "k": "run_done", "i": "{$instance}",
                          "t": "{$thread}", "m": "{message_id}"},
                 "fcm": {"v": 1, "nid": "{$id}", "k": "run_done", "i": "{$instance}",
                         "t": "{$thread}", "m": "{message_id}", "badge": "{$badge}", "quiet": "{$silent}"}}',
    wait_for_device => '0', max_age => '1 h', provider_ttl => '24 h', retry => '2s..5m', collapse => 'thread',
    interruption_level => 'active', category => 'RUN_DONE', sound => 'default', mutable_content => true);

SELECT postbell.define_kind('run_failed', 'localized',
    payload => '{"message_id": "uuid?"}',
    content => '{"title": "PUSH_TITLE", "body": "PUSH_BODY_RUN_FAILED", "container": "b",
                 "data": {"v": 1, "nid": "{$id}", "k": "run_failed", "i": "{$instance}",
                          "t": "{$thread}", "m": "{message_id}"},
                 "fcm": {"v": 1, "nid": "{$id}", "k": "run_failed", "i": "{$instance}",
                         "t": "{$thread}", "m": "{message_id}", "badge": "{$badge}", "quiet": "{$silent}"}}',
    wait_for_device => '0', max_age => '1 h', provider_ttl => '24 h', retry => '2s..5m', collapse => 'thread',
    interruption_level => 'active', category => 'RUN_FAILED', sound => 'default', mutable_content => true);

-- A run waits for this very person. An app with Apple's entitlement may say 'time-sensitive' here; silence wins all the
-- same.
SELECT postbell.define_kind('input_needed', 'localized',
    payload => '{"message_id": "uuid?"}',
    content => '{"title": "PUSH_TITLE", "body": "PUSH_BODY_INPUT_NEEDED", "container": "b",
                 "data": {"v": 1, "nid": "{$id}", "k": "input_needed", "i": "{$instance}",
                          "t": "{$thread}", "m": "{message_id}"},
                 "fcm": {"v": 1, "nid": "{$id}", "k": "input_needed", "i": "{$instance}",
                         "t": "{$thread}", "m": "{message_id}", "badge": "{$badge}", "quiet": "{$silent}"}}',
    wait_for_device => '0', max_age => '1 h', provider_ttl => '24 h', retry => '2s..5m', collapse => 'thread',
    interruption_level => 'active', category => 'INPUT_NEEDED', sound => 'default', mutable_content => true);

-- These two belong to no thread: they carry none, and neither replaces anything nor is replaced.
SELECT postbell.define_kind('security', 'localized',
    payload => '{}',
    content => '{"title": "PUSH_TITLE", "body": "PUSH_BODY_SECURITY", "container": "b",
                 "data": {"v": 1, "nid": "{$id}", "k": "security", "i": "{$instance}"},
                 "fcm": {"v": 1, "nid": "{$id}", "k": "security", "i": "{$instance}",
                         "badge": "{$badge}", "quiet": "{$silent}"}}',
    wait_for_device => '0', max_age => '1 h', provider_ttl => '24 h', retry => '2s..5m', collapse => 'none',
    group_by_thread => false, interruption_level => 'active', category => 'SECURITY', sound => 'default',
    mutable_content => true);

SELECT postbell.define_kind('admin', 'localized',
    payload => '{}',
    content => '{"title": "PUSH_TITLE", "body": "PUSH_BODY_ADMIN", "container": "b",
                 "data": {"v": 1, "nid": "{$id}", "k": "admin", "i": "{$instance}"},
                 "fcm": {"v": 1, "nid": "{$id}", "k": "admin", "i": "{$instance}",
                         "badge": "{$badge}", "quiet": "{$silent}"}}',
    wait_for_device => '0', max_age => '1 h', provider_ttl => '24 h', retry => '2s..5m', collapse => 'none',
    group_by_thread => false, interruption_level => 'active', category => 'ADMIN', sound => 'default',
    mutable_content => true);

-- What was read elsewhere: the new number, and on Android the threads that leave the drawer; all of them or, where they
-- are too many, none. On Apple's devices the number is all there is.
SELECT postbell.define_kind('sync', 'localized',
    payload => '{"cleared": "uuids(100)?"}',
    content => '{"form": "badge",
                 "fcm": {"v": 1, "nid": "{$id}", "k": "sync", "i": "{$instance}", "badge": "{$badge}",
                         "cleared": "{cleared}"}}',
    priority => 5::smallint, wait_for_device => '0', max_age => '1 h', provider_ttl => '24 h', retry => '2s..5m',
    collapse => 'none');

RESET ROLE;

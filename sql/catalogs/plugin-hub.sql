-- The kinds of a hub for plugins: one for the codes of all publishers, and one to see that a device is reached.
--
-- A push carries a code and numbers. What a code means is in the mapping, which the app fetches beforehand
-- (postbell.mapping) and its extension reads; a plugin brings its own codes and needs no new build of the app. Where
-- the extension does not run, or a code is not in its copy, the alert stands as it is: the app's name, nothing more.
-- The dictionary stands under `officer`: code, numbers, and `mv`, the version that tells the app to fetch again.
--
-- What producers give beside the payload (docs/kinds.md, sql/examples/plugin-hub.sql):
--   thread  publisher/app, which groups on the device
--   badge   the number on the icon, where there is one
-- Every notification is its own: none replaces another. A code is checked by its form; one that nobody has installed
-- yet goes out like any other.
--
-- To adapt: the title, the container, the platform's own codes below. Plugins install theirs in their own roles, each
-- in the namespace that it was given (postbell.assign_namespace). Idempotent: apply it again after a change, in one
-- transaction, as a member of postbell_owner:
--   psql -1 -v ON_ERROR_STOP=1 -f sql/catalogs/plugin-hub.sql

SET LOCAL ROLE postbell_owner;

SELECT postbell.define_kind('code', 'code',
    payload => '{"code": "code!", "n": "int?", "id": "int?"}',
    content => '{"title": "Officer",
                 "container": "officer",
                 "data": {"c": "{code}", "n": "{n}", "id": "{id}", "mv": "{$mapping}"}}',
    sound => 'default', mutable_content => true, collapse => 'none');

-- First light: words of its own, no code, no extension.
SELECT postbell.define_kind('test', 'template',
    content => '{"title": "Officer", "body": "Notifications reach this device."}',
    max_age => '1 h', sound => 'default', collapse => 'none');

-- The platform's own codes, in the namespace of the catalog's owner. {n} and {id} are filled by the app.
SELECT postbell.assign_namespace('postbell_owner', 'officer/core');
SELECT postbell.install_codes('{
    "job-finished": {"title": "Job finished", "target": "jobs", "route": "jobs/{id}", "thread": "jobs"},
    "job-failed": {"title": "Job failed", "body": "Open it for its log", "target": "jobs", "route": "jobs/{id}",
                   "thread": "jobs"},
    "turn-ended": {"title": "The agent is done", "target": "agent", "route": "agent/{id}", "thread": "agent"},
    "mail-arrived": {"title": "{n} new messages", "target": "mail", "route": "mail", "thread": "mail"}
}');

RESET ROLE;

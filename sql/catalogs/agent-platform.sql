-- The kinds of an agent platform: approvals, questions, runs, schedules, devices, calls and operations.
--
-- A push says what happened and which record it is about, in fixed texts; the app fetches the rest when it is opened.
-- The one text that people wrote is the title of a schedule, which is shown and never in the dictionary.
-- The dictionary stands under `veetbot`, version 1. What is absent is left out.
--
-- What producers give beside the payload (docs/kinds.md, sql/examples/agent-platform.sql):
--   dedupe_key  what happened to which record: approval.requested:<id>, schedule.run_accounted:<id>, …
--   subject     what can end it: approval:<id>, question:<id>, run:<id>
--   thread      session:<id>, which groups on the device, and is erased with the session
--   expires_at  the approval's own deadline, the end of a call's retention; else a day
--   device_id   for `test` and `device_invocation`: the one device
--
-- To adapt: the container, the signals' labels, the sounds. Idempotent: apply it again after a change, in one
-- transaction, as a member of postbell_owner:
--   psql -1 -v ON_ERROR_STOP=1 -f sql/catalogs/agent-platform.sql

SET LOCAL ROLE postbell_owner;

-- Attention: somebody has to act, and something waits for it. Half a minute of grace, in which whoever is looking at it
-- has answered already; wakes the device.

SELECT postbell.define_kind('approval_requested', 'template',
    payload => '{"approval_id": "uuid!", "session_id": "uuid?", "run_id": "uuid?", "tool_name": "slug?"}',
    content => '{"title": "Approval needed",
                 "body": {"by": "tool_name", "absent": "A tool is waiting for your decision.",
                          "else": "{tool_name} is waiting for your decision."},
                 "container": "veetbot",
                 "data": {"version": 1, "kind": "approval_requested", "title": "{$title}", "notification_id": "{$id}",
                          "approval_id": "{approval_id}", "session_id": "{session_id}", "run_id": "{run_id}",
                          "tool_name": "{tool_name}"}}',
    grace => '30 s', retry => '30s,2m,10m,1h', sound => 'default');

SELECT postbell.define_kind('question_asked', 'template',
    payload => '{"question_id": "uuid!", "run_id": "uuid!", "session_id": "uuid?"}',
    content => '{"title": "The agent has a question",
                 "body": "The run goes on when you have answered it.",
                 "container": "veetbot",
                 "data": {"version": 1, "kind": "question_asked", "title": "{$title}", "notification_id": "{$id}",
                          "question_id": "{question_id}", "run_id": "{run_id}", "session_id": "{session_id}"}}',
    grace => '30 s', retry => '30s,2m,10m,1h', sound => 'default');

SELECT postbell.define_kind('device_invocation', 'template',
    payload => '{"invocation_id": "uuid!", "session_id": "uuid?", "run_id": "uuid?", "tool_name": "slug?"}',
    content => '{"title": "Action on this device",
                 "body": {"by": "tool_name", "absent": "Open the app to carry it out.",
                          "else": "Open the app to carry out {tool_name}."},
                 "container": "veetbot",
                 "data": {"version": 1, "kind": "device_invocation", "title": "{$title}", "notification_id": "{$id}",
                          "invocation_id": "{invocation_id}", "session_id": "{session_id}", "run_id": "{run_id}",
                          "tool_name": "{tool_name}"}}',
    retry => '30s,2m,10m,1h', sound => 'default');

-- Results: over, and read when there is time. A result that was seen on another device is not sent any more
-- (postbell.sync takes the receipt).

SELECT postbell.define_kind('run_failed', 'template',
    payload => '{"run_id": "uuid!", "session_id": "uuid?"}',
    content => '{"title": "Run failed",
                 "body": "Open it to see why and to try again.",
                 "container": "veetbot",
                 "data": {"version": 1, "kind": "run_failed", "title": "{$title}", "status": "failed",
                          "notification_id": "{$id}", "run_id": "{run_id}", "session_id": "{session_id}"}}',
    priority => 5::smallint, retry => '30s,2m,10m,1h', sound => 'default', ends_when_seen => true);

SELECT postbell.define_kind('schedule_run_finished', 'template',
    payload => '{"schedule_id": "uuid!", "occurrence_id": "uuid!", "run_id": "uuid?", "session_id": "uuid?",
                 "status": "enum(completed,failed,cancelled)!",
                 "schedule_title": "text(160)?", "scheduled_for": "timestamp?"}',
    content => '{"title": "Scheduled run finished", "subtitle": "{schedule_title}",
                 "body": {"by": "scheduled_for",
                          "absent": {"by": "status", "cases": {
                              "completed": "Its report is ready.",
                              "failed": "It failed; open it to see why.",
                              "cancelled": "It was cancelled before its end."}},
                          "else": {"by": "status", "cases": {
                              "completed": "Due {scheduled_for}. Its report is ready.",
                              "failed": "Due {scheduled_for}. It failed; open it to see why.",
                              "cancelled": "Due {scheduled_for}. It was cancelled before its end."}}},
                 "visible": {"schedule_title": "Scheduled task"},
                 "container": "veetbot",
                 "data": {"version": 1, "kind": "schedule_run_finished", "title": "{$title}", "status": "{status}",
                          "notification_id": "{$id}", "schedule_id": "{schedule_id}",
                          "occurrence_id": "{occurrence_id}", "run_id": "{run_id}", "session_id": "{session_id}"}}',
    priority => 5::smallint, grace => '30 s', retry => '30s,2m,10m,1h', sound => 'default', ends_when_seen => true);

SELECT postbell.define_kind('schedule_occurrence_skipped', 'template',
    payload => '{"schedule_id": "uuid!", "occurrence_id": "uuid!",
                 "status": "enum(missed,skipped_overlap,authorization_failed,configuration_failed)!",
                 "schedule_title": "text(160)?", "scheduled_for": "timestamp?"}',
    content => '{"title": "Scheduled run skipped", "subtitle": "{schedule_title}",
                 "body": {"by": "scheduled_for",
                          "absent": {"by": "status", "cases": {
                              "missed": "Its time passed while nothing could run.",
                              "skipped_overlap": "The run before it was not over.",
                              "authorization_failed": "It may not run any more; look at its permissions.",
                              "configuration_failed": "It cannot run as it is set up; look at its settings."}},
                          "else": {"by": "status", "cases": {
                              "missed": "Due {scheduled_for}. Its time passed while nothing could run.",
                              "skipped_overlap": "Due {scheduled_for}. The run before it was not over.",
                              "authorization_failed":
                                  "Due {scheduled_for}. It may not run any more; look at its permissions.",
                              "configuration_failed":
                                  "Due {scheduled_for}. It cannot run as it is set up; look at its settings."}}},
                 "visible": {"schedule_title": "Scheduled task"},
                 "container": "veetbot",
                 "data": {"version": 1, "kind": "schedule_occurrence_skipped", "title": "{$title}",
                          "status": "{status}", "notification_id": "{$id}", "schedule_id": "{schedule_id}",
                          "occurrence_id": "{occurrence_id}"}}',
    priority => 5::smallint, grace => '30 s', retry => '30s,2m,10m,1h', sound => 'default');

-- Of a call nothing but its id: no number, no name, no run. It is readable for thirty days, and so is this.
SELECT postbell.define_kind('call_finished', 'template',
    payload => '{"call_id": "uuid!"}',
    content => '{"title": "New call result",
                 "body": "Open it to read what came of the call.",
                 "container": "veetbot",
                 "data": {"version": 1, "kind": "call_finished", "title": "{$title}", "notification_id": "{$id}",
                          "call_id": "{call_id}"}}',
    priority => 5::smallint, max_age => '30 d', provider_ttl => '28 d', retry => '30s,2m,10m,1h', sound => 'default');

-- Operations: a signal that fails, and the same one when it is well again. The episode is part of the key
-- (ops.<tenant>.<signal>.<episode>, and .recovered behind it), so that neither is taken for the other.

SELECT postbell.define_kind('ops_alert', 'template',
    payload => '{"signal": "slug!", "severity": "enum(info,warn,critical)!", "reason_code": "slug?",
                 "release_id": "slug?"}',
    content => '{"title": "Production alert",
                 "body": "{signal}: {severity}. Open it for what to do.",
                 "labels": {"signal": {"api": "API", "database": "Database", "disk": "Disk space",
                                       "queue_age": "Age of the queue", "workers": "Workers", "backup": "Backup",
                                       "certificate": "Certificate", "*": "Health check"},
                            "severity": {"info": "for information", "warn": "warning", "critical": "critical",
                                         "*": "warning"}},
                 "container": "veetbot",
                 "data": {"version": 1, "kind": "ops_alert", "title": "{$title}", "notification_id": "{$id}",
                          "signal": "{signal}", "severity": "{severity}", "reason_code": "{reason_code}",
                          "release_id": "{release_id}"}}',
    retry => '30s,2m,10m,1h', sound => 'default');

SELECT postbell.define_kind('ops_recovered', 'template',
    payload => '{"signal": "slug!", "reason_code": "slug?", "release_id": "slug?"}',
    content => '{"title": "Production recovered",
                 "body": "{signal}: well again.",
                 "labels": {"signal": {"api": "API", "database": "Database", "disk": "Disk space",
                                       "queue_age": "Age of the queue", "workers": "Workers", "backup": "Backup",
                                       "certificate": "Certificate", "*": "Health check"}},
                 "container": "veetbot",
                 "data": {"version": 1, "kind": "ops_recovered", "title": "{$title}", "notification_id": "{$id}",
                          "signal": "{signal}", "severity": "recovered", "reason_code": "{reason_code}",
                          "release_id": "{release_id}"}}',
    priority => 5::smallint, retry => '30s,2m,10m,1h', sound => 'default');

-- To one device, from its settings: device.test:<device>:<key>.
SELECT postbell.define_kind('test', 'template',
    content => '{"title": "Test notification",
                 "body": "Notifications reach this device.",
                 "container": "veetbot",
                 "data": {"version": 1, "kind": "test", "title": "{$title}", "notification_id": "{$id}"}}',
    max_age => '1 h', retry => '30s,2m,10m,1h', sound => 'default');

RESET ROLE;

-- What the demo may announce, and who may do what. Run once, by the owner of the schema.

SELECT postbell.define_kind('approval_requested',
    presentation => 'template',
    payload      => '{"approval_id": "uuid!", "tool_name": "slug!"}',
    content      => '{"title": "Approval needed", "body": "{tool_name} is waiting for you", "container": "demo"}',
    urgency      => 'urgent',
    wait_for_device => '0');

SELECT postbell.define_kind('run_finished',
    presentation => 'template',
    payload      => '{"run_id": "uuid!"}',
    content      => '{"title": "Run finished", "body": "Open the app to see the result", "container": "demo"}',
    urgency      => 'bulk',
    wait_for_device => '0');

-- The application enqueues and registers devices, the worker dispatches, people look in. None can do another's part.
CREATE ROLE demo_app LOGIN;
GRANT postbell_producer, postbell_registrar TO demo_app;
CREATE ROLE demo_worker LOGIN;
GRANT postbell_dispatcher TO demo_worker;
CREATE ROLE demo_reader LOGIN;
GRANT postbell_reader TO demo_reader;

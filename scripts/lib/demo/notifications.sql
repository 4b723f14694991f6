-- What an application does in the transaction of the change that it announces.

BEGIN;
INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, payload) VALUES
    ('ada', 'run_finished', 'run:1', 'run:1', '{"run_id": "00000000-0000-4000-8000-000000000001"}'),
    ('ben', 'run_finished', 'run:2', 'run:2', '{"run_id": "00000000-0000-4000-8000-000000000002"}'),
    ('cleo', 'approval_requested', 'approval:3', 'approval:3',
        '{"approval_id": "00000000-0000-4000-8000-000000000003", "tool_name": "mail.send"}'),
    ('dan', 'approval_requested', 'approval:4', 'approval:4',
        '{"approval_id": "00000000-0000-4000-8000-000000000004", "tool_name": "mail.send"}'),
    ('eve', 'run_finished', 'run:5', 'run:5', '{"run_id": "00000000-0000-4000-8000-000000000005"}');
COMMIT;

-- Said twice, sent once.
INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, payload) VALUES
    ('ada', 'run_finished', 'run:1', 'run:1', '{"run_id": "00000000-0000-4000-8000-000000000001"}')
ON CONFLICT DO NOTHING;

-- Dan answers at his desk, before his phone rings.
SELECT postbell.supersede('default', 'approval:4');

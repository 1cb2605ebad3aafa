-- The long tables of crowd.py, which gives the sizes and has made the rest.

-- Every five-hundredth is cooling down, half of these not any more.
INSERT INTO accounts_recipient (id, owner_id, channel, kind, address, name, fields, attempts, cooldown_until,
                                created_at)
SELECT n, 1 + mod(n, %(owners)s), 'whatsapp', 'group', (120363000000000000 + n) || '@g.us',
       'Group ' || n || ' of ' || md5(n::text), '{}', 0,
       CASE WHEN mod(n, 500) = 0 THEN now() + (mod(n, 96) - 48) * interval '1 hour' END, now()
FROM generate_series(1, %(recipients)s) n;

-- The operator of the busiest account has a long address book, in one tag. One draft names all of it, one reminder
-- that is scheduled goes to the tag; every hundredth lacks what their messages ask for, and some opted out.
INSERT INTO accounts_recipient (id, owner_id, channel, kind, address, name, fields, attempts, opted_out_at,
                                created_at)
SELECT %(recipients)s + n, %(operator)s, 'whatsapp', 'group', (120363100000000000 + n) || '@g.us',
       'Class ' || n || ' of ' || md5(n::text),
       CASE WHEN mod(n, 100) = 0 THEN '{}' ELSE '{"place": "Hall"}' END::jsonb, 0,
       CASE WHEN mod(n, 1000) = 1 THEN now() END, now()
FROM generate_series(1, %(audience)s) n;
INSERT INTO accounts_tag (id, owner_id, name) VALUES (1, %(operator)s, 'Everyone');
INSERT INTO accounts_recipient_tags (recipient_id, tag_id)
SELECT %(recipients)s + n, 1 FROM generate_series(1, %(audience)s) n;
INSERT INTO reminders_reminder_recipients (reminder_id, recipient_id)
SELECT %(draft)s, %(recipients)s + n FROM generate_series(1, %(audience)s) n;
INSERT INTO reminders_reminder_tags (reminder_id, tag_id) VALUES (%(by_tag)s, 1);

-- A run takes its recipients in a row, from a place of its own in their list. Three of a running run are in
-- flight; the one of a partial run that failed is its first.
INSERT INTO delivery_runtarget (run_id, recipient_id, account_id, status, not_before, fence, claimed_at)
SELECT run.id, 1 + mod(run.id * 7919 + k, %(recipients)s), 1 + mod(run.id, %(accounts)s),
       CASE WHEN run.status IN ('paused', 'queued') THEN 'pending'
            WHEN run.status = 'running' THEN CASE WHEN k < 3 THEN 'sending' ELSE 'pending' END
            WHEN run.status = 'partial' AND k = 0 THEN 'failed'
            ELSE 'sent' END,
       run.fired_at + k * interval '1 second', 1, run.fired_at + k * interval '1 second'
FROM delivery_run run, generate_series(0, run.total - 1) k;

-- A tenth of the ledger is the busiest account's, all of the last day; the rest is spread over a month.
INSERT INTO activity_attempt (at, owner_id, account_id, run_id, target_id, action, part, attempt, outcome,
                              provider_id, error, took_ms)
SELECT now() - random() * CASE WHEN busiest THEN interval '1 day' ELSE interval '30 days' END,
       1 + mod(account, %(owners)s), account, 1 + mod(n, %(runs)s), n, 'message', 0, 1, 'sent', 'id-' || n, '', 120
FROM (
    SELECT n, mod(n, 10) = 0 AS busiest, CASE mod(n, 10) WHEN 0 THEN 1 ELSE 1 + mod(n, %(accounts)s) END AS account
    FROM generate_series(1, %(attempts)s) n
) made;

-- One in a hundred is unread.
INSERT INTO activity_notification (owner_id, kind, key, title, body, url, created_at, read_at)
SELECT 1 + mod(n, %(owners)s), 'success', 'run-' || n, 'Run finished', '', '', now(),
       CASE WHEN mod(n, 101) > 0 THEN now() END
FROM generate_series(1, %(attempts)s / 4) n;

-- One in ten is still in the queue, half of these due.
INSERT INTO reminders_followup (step_id, recipient_id, target_id, urgency, status, due_at, removed_reason,
                                queued_at, ended_at)
SELECT 1, target.recipient_id, target.id, 'medium', CASE mod(target.id, 10) WHEN 0 THEN 'queued' ELSE 'sent' END,
       now() + (mod(target.id, 97) - 48) * interval '1 hour', '', now(),
       CASE WHEN mod(target.id, 10) > 0 THEN now() - mod(target.id, 89) * interval '1 day' END
FROM (SELECT id, recipient_id FROM delivery_runtarget WHERE status = 'sent' LIMIT %(targets)s / 50) target;

SELECT setval(pg_get_serial_sequence('accounts_recipient', 'id'), max(id)) FROM accounts_recipient;

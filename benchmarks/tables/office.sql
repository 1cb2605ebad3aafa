-- The long tables around sending, of office.py: a tenth of the targets each, if nothing else is said.

-- One in twenty of the largest run failed or is in doubt, for one of a few causes. The database lets a target go there
-- by way of sending alone.
UPDATE delivery_runtarget SET status = 'sending', fence = 1, claimed_at = now()
WHERE run_id = 1 AND status = 'pending' AND mod(id, 20) = 0;
UPDATE delivery_runtarget
SET status = CASE WHEN mod(id, 40) = 0 THEN 'failed' ELSE 'unconfirmed' END,
    error = CASE mod(id, 3) WHEN 0 THEN 'Not on WhatsApp' WHEN 1 THEN 'No answer within 30 s' ELSE 'Refused: ' || id END,
    settled_at = now()
WHERE run_id = 1 AND status = 'sending' AND mod(id, 20) = 0;
UPDATE delivery_run SET
    failed = (SELECT count(*) FROM delivery_runtarget WHERE run_id = 1 AND status = 'failed'),
    unconfirmed = (SELECT count(*) FROM delivery_runtarget WHERE run_id = 1 AND status = 'unconfirmed'),
    sending = (SELECT count(*) FROM delivery_runtarget WHERE run_id = 1 AND status = 'sending'),
    pending = (SELECT count(*) FROM delivery_runtarget WHERE run_id = 1 AND status = 'pending')
WHERE id = 1;

-- Items of the operator's queue: half are sent, the others are planned for the next days. Texts are their own.
INSERT INTO delivery_runtarget (run_id, recipient_id, account_id, item_id, status, not_before, settled_at)
SELECT %(run)s, 1 + mod(n, %(recipients)s), 1, n, CASE WHEN n <= %(items)s / 2 THEN 'sent' ELSE 'pending' END,
       now() + mod(n, 4000) * interval '1 minute', CASE WHEN n <= %(items)s / 2 THEN now() END
FROM generate_series(1, %(items)s) n;
INSERT INTO delivery_targetcontent (target_id, subject, parts, values)
SELECT id, '', jsonb_build_array(jsonb_build_object('kind', 'text', 'text', 'Letter ' || item_id)), '{}'
FROM delivery_runtarget WHERE run_id = %(run)s;
INSERT INTO queues_item (id, queue_id, source, own_id, target_id, recipient_id, account_id, priority, planned_at, given,
                         added_at)
SELECT item_id, %(queue)s, %(key)s, 'row-' || item_id, id, recipient_id, account_id, 0, not_before, md5(id::text), now()
FROM delivery_runtarget WHERE run_id = %(run)s;
UPDATE delivery_run SET total = %(items)s, sent = %(items)s / 2, pending = %(items)s - %(items)s / 2
WHERE id = %(run)s;
INSERT INTO queues_sourcerow (source_id, own_id, place, item_id, digest, seen_in, problem, unwritten, shown, due, repairs)
SELECT %(source)s, 'row-' || n, n::text, n, md5(n::text), 1,
       CASE WHEN mod(n, 1000) = 0 THEN 'This is not a phone number.' ELSE '' END, '', '{}', mod(n, 5000) = 1, 0
FROM generate_series(1, %(items)s) n;
INSERT INTO queues_sourceread (source_id, started_at, ended_at, outcome, cursor, counts, why)
SELECT %(source)s, now() - n * interval '5 minutes', now() - n * interval '5 minutes', 'done', '{}', '{"rows": 7}', ''
FROM generate_series(1, 10000) n;

-- The audit log: a third of the operator's, most of one kind.
INSERT INTO audit_entry (at, owner_id, actor_id, actor_name, door, via, address, action, thing_type, thing_id,
                         thing_name, note)
SELECT now() - (%(items)s - n) * interval '30 seconds', owner, owner, 'operator-' || owner, 'page', '', '127.0.0.1',
       CASE WHEN mod(n, 10000) = 1 THEN 'webhook.added' ELSE 'recipient.changed' END,
       CASE WHEN mod(n, 10000) = 1 THEN 'webhook' ELSE 'recipient' END, 1 + mod(n, %(recipients)s), '', ''
FROM (SELECT n, CASE WHEN mod(n, 3) = 0 THEN %(operator)s ELSE 1 + mod(n, %(owners)s) END AS owner
      FROM generate_series(1, %(items)s) n) made;

-- The log of the operator's webhook, and notices to an address.
INSERT INTO accounts_delivery (webhook_id, key, type, sequence, payload, created_at, give_up_at, state, attempts,
                               next_try_at, ended_at, answer)
SELECT %(webhook)s, gen_random_uuid(), 'run.finished', 'run-' || n, '{"type": "run.finished"}', now(), now(),
       CASE WHEN mod(n, 1000) = 0 THEN 'pending' ELSE 'delivered' END, 1, now(),
       CASE WHEN mod(n, 1000) > 0 THEN now() END, 'ok'
FROM generate_series(1, %(items)s) n;
INSERT INTO notices_notice (address_id, kind, subject, title, body, url, happened_at, number, due_at, give_up_at,
                            attempts, state, ended_at, problem)
SELECT %(address)s, 'success', 'run:' || n, 'Run finished', '', '', now(), 1, now(), now(), 1, 'sent', now(), ''
FROM generate_series(1, %(items)s / 10) n;

-- Messages and receipts that came to the busiest account; most answer its largest run.
INSERT INTO activity_inbound (account_id, event_id, kind, recipient_id, target_id, run_id, provider_id, sender, chat,
                              state, text, at, created_at, handled_at)
SELECT 1, 'event-' || n, CASE WHEN mod(n, 4) = 0 THEN 'message' ELSE 'receipt' END,
       1 + mod(n, %(recipients)s), n, CASE WHEN mod(n, 4) = 0 THEN 1 END, 'id-' || n, '', '', '', 'Yes, please', now() - n * interval '1 second', now(),
       now()
FROM generate_series(1, %(items)s) n;
INSERT INTO accounts_contact (recipient_id, account_id, talked_at)
SELECT 1 + mod(n, %(recipients)s), 1 + n / %(recipients)s, now() - mod(n, 90) * interval '1 day'
FROM generate_series(1, %(items)s) n;
INSERT INTO activity_accountday (account_id, day, sent)
SELECT account, current_date - day, 500 FROM generate_series(1, %(accounts)s) account, generate_series(0, 400) day;
INSERT INTO accounts_importrow (job_id, number, written, address, kind, name, fields, tags, problem, known)
SELECT %(job)s, n, '+60' || n, '60' || n, 'person', 'Person ' || n, '{}', '{}',
       CASE WHEN mod(n, 1000) = 0 THEN 'This is not a phone number.' ELSE '' END, false
FROM generate_series(1, %(items)s) n;

-- Tags as people make them: two large ones beside that of everyone, and fifty small ones.
INSERT INTO accounts_tag (id, owner_id, name) SELECT n, %(operator)s, 'Tag ' || n FROM generate_series(2, 53) n;
INSERT INTO accounts_recipient_tags (recipient_id, tag_id)
SELECT %(recipients)s + n, CASE WHEN mod(n, 2) = 0 THEN 2 ELSE 3 END FROM generate_series(1, %(audience)s) n
UNION ALL
SELECT %(recipients)s + n * 7, 4 + mod(n, 50) FROM generate_series(1, %(audience)s / 70) n;
SELECT setval(pg_get_serial_sequence('queues_item', 'id'), max(id)) FROM queues_item;
SELECT setval(pg_get_serial_sequence('accounts_tag', 'id'), max(id)) FROM accounts_tag;

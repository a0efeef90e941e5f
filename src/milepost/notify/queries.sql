-- Every statement of the outbox: its name, its purpose in a line, itself.

-- name: schema
-- One row for each notification: about which question, why, through which channel. It stays as long as that is open.
CREATE TABLE IF NOT EXISTS notifications (
  question_id TEXT NOT NULL,
  reason TEXT NOT NULL,
  channel TEXT NOT NULL,
  run_id TEXT NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  next_at TEXT NOT NULL,
  sent_at TEXT,
  last_error TEXT NOT NULL,
  claimed_by TEXT,
  claimed_until TEXT,
  PRIMARY KEY (question_id, reason, channel)
) STRICT

-- name: note
-- Note that something is to be sent; known already, it stays as it is.
INSERT OR IGNORE INTO notifications
  (question_id, reason, channel, run_id, state, attempts, next_at, last_error)
VALUES (?, ?, ?, ?, 'waiting', 0, ?, '')

-- name: claim
-- Take one notification that is due and that nobody is sending; the attempt counts from here.
UPDATE notifications SET claimed_by = :by, claimed_until = :until, attempts = attempts + 1
WHERE question_id = :question_id AND reason = :reason AND channel = :channel AND state = 'waiting'
  AND next_at <= :now AND (claimed_until IS NULL OR claimed_until <= :now)
RETURNING attempts

-- name: settle
-- Record what became of an attempt; a sender that was too slow changes nothing.
UPDATE notifications
SET state = :state, next_at = :next_at, sent_at = :sent_at, last_error = :error, claimed_by = NULL, claimed_until = NULL
WHERE question_id = :question_id AND reason = :reason AND channel = :channel AND claimed_by = :by

-- name: all
-- Everything, oldest first.
SELECT question_id, reason, channel, run_id, state, attempts, next_at, sent_at, last_error
FROM notifications ORDER BY rowid

-- name: drop
-- Nobody has to be told any more: the question is answered.
UPDATE notifications SET state = 'dropped', claimed_by = NULL, claimed_until = NULL
WHERE question_id = ? AND state IN ('waiting', 'failed')

-- name: forget
-- Forget the oldest of what is settled, beyond so many rows: of questions nobody is asked any more.
DELETE FROM notifications
WHERE question_id = ? AND rowid <= (SELECT max(rowid) FROM notifications) - ?

-- name: again
-- Try what was given up once more from the start.
UPDATE notifications SET state = 'waiting', attempts = 0, next_at = ? WHERE state = 'failed'

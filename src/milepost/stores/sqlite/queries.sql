-- Every statement of the SQLite store: its name, its purpose in a line, itself.

-- name: schema_version
-- The newest migration this file has seen.
SELECT coalesce(max(number), 0) FROM migrations

-- name: record_migration
-- Note a migration, in its own transaction.
INSERT INTO migrations (number, name) VALUES (?, ?)

-- name: store_id
-- The random name of this store, given once.
SELECT value FROM meta WHERE name = 'store_id'

-- name: data_version
-- A number that differs once another connection has committed.
PRAGMA data_version

-- ── appending ──

-- name: advance_run
-- Fence, new head, a lease given back, what the list shows; no row when the token or the journal's end is another.
UPDATE runs SET head_seq = ?, head_seal = ?, released = max(released, ?), status = coalesce(?, status),
  status_at = coalesce(?, status_at), verified_count = coalesce(?, verified_count),
  applied_count = coalesce(?, applied_count), next_action = coalesce(?, next_action), detail = coalesce(?, detail),
  cost = coalesce(?, cost), tokens = coalesce(?, tokens)
WHERE run_id = ? AND token = ? AND head_seq = ?

-- name: advance_runs
-- The same, of many runs in one statement.
UPDATE runs SET head_seq = new.head_seq, head_seal = new.head_seal,
  released = max(runs.released, new.gives_back), status = coalesce(new.status, runs.status),
  status_at = coalesce(new.status_at, runs.status_at),
  verified_count = coalesce(new.verified_count, runs.verified_count),
  applied_count = coalesce(new.applied_count, runs.applied_count),
  next_action = coalesce(new.next_action, runs.next_action), detail = coalesce(new.detail, runs.detail),
  cost = coalesce(new.cost, runs.cost), tokens = coalesce(new.tokens, runs.tokens)
FROM (
  WITH given (head_seq, head_seal, gives_back, status, status_at, verified_count, applied_count, next_action, detail,
    cost, tokens, run_id, token, head_before) AS (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))
  SELECT * FROM given
) new
WHERE runs.run_id = new.run_id AND runs.token = new.token AND runs.head_seq = new.head_before

-- name: append_records
-- Lines of journals with the artifacts they carry, each fenced by its token in the statement that writes it.
INSERT INTO journal (run, seq, chain, kind, body, seal, digest, media_type, data)
WITH line (seq, chain, kind, body, seal, digest, media_type, data, run_id, token)
  AS (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?))
SELECT runs.number, seq, chain, kind, body, seal, digest, media_type, data
FROM line CROSS JOIN runs ON runs.run_id = line.run_id AND runs.token = line.token

-- name: keep_artifact
-- An artifact no record carries, fenced; the same digest twice is one row.
INSERT OR IGNORE INTO artifacts (run, digest, size, media_type, data)
SELECT number, ?, ?, ?, ? FROM runs WHERE run_id = ? AND token = ?

-- name: put_question
-- A question, or its new state; never another run's.
INSERT INTO questions (question_id, run, kind, path, sentence, asked_at, body, closed)
SELECT ?, number, ?, ?, ?, ?, ?, ? FROM runs WHERE run_id = ? AND token = ?
ON CONFLICT (question_id) DO UPDATE SET closed = excluded.closed, sentence = excluded.sentence, body = excluded.body
WHERE run = excluded.run

-- name: settle_claim
-- How the effect under a key this run owns has ended; the row is written whole, as it was sealed.
UPDATE claims SET path = ?, request_digest = ?, at = ?, outcome = ?, ref = ?, result = ?, media_type = ?, seal = ?
WHERE key = ? AND run_id = ? AND EXISTS (SELECT 1 FROM runs WHERE run_id = ? AND token = ?)

-- name: token
-- The newest token of a run.
SELECT token FROM runs WHERE run_id = ?

-- ── runs and leases ──

-- name: pruned
-- Whether a run of this id was pruned.
SELECT 1 FROM audit WHERE run_id = ?

-- name: create_run
-- A new run, held by its creator with token 1; no row when the id is taken.
INSERT INTO runs (run_id, task, family, seal_name, started_at, token, released, host, boot_id, pid, since,
  beat, beat_at, status, status_at, verified_count, applied_count, next_action, detail, head_seq, head_seal, shadow)
VALUES (?, ?, ?, ?, ?, 1, 0, ?, ?, ?, ?, 0, ?, ?, ?, 0, 0, '', '', 0, x'', ?)
ON CONFLICT (run_id) DO NOTHING

-- name: run
-- One run.
SELECT run_id, task, family, seal_name, started_at, token, released, host, boot_id, pid, since, beat, beat_at,
  status, status_at, verified_count, applied_count, next_action, detail, head_seq, head_seal,
  cancel_by, cancel_at, cancel_note, cancel_seal, shadow, cost, tokens
FROM runs WHERE run_id = ?

-- name: runs
-- Runs, newest start first, from after a given one; those that hold a text.
SELECT run_id, task, family, seal_name, started_at, token, released, host, boot_id, pid, since, beat, beat_at,
  status, status_at, verified_count, applied_count, next_action, detail, head_seq, head_seal,
  cancel_by, cancel_at, cancel_note, cancel_seal, shadow, cost, tokens
FROM runs
WHERE (:task IS NULL OR task = :task) AND (:status IS NULL OR status = :status)
  AND (:family IS NULL OR family = :family)
  AND (:search IS NULL OR instr(lower(run_id || char(10) || task || char(10) || next_action || char(10) || detail),
    lower(:search)))
  AND (:before IS NULL OR (started_at, number) < (SELECT started_at, number FROM runs WHERE run_id = :before))
ORDER BY started_at DESC, number DESC LIMIT :limit

-- name: held_runs
-- Leases nobody gave back.
SELECT run_id, token, host, boot_id, pid FROM runs WHERE released = 0

-- name: take_lease
-- The next token for a new holder.
UPDATE runs SET token = token + 1, released = 0, host = ?, boot_id = ?, pid = ?, since = ?, beat = 0, beat_at = ?
WHERE run_id = ? AND token = ?

-- name: renew_lease
-- One sign of life, fenced.
UPDATE runs SET beat = beat + 1, beat_at = ? WHERE run_id = ? AND token = ?

-- name: release_lease
-- Give a run back, fenced.
UPDATE runs SET released = 1 WHERE run_id = ? AND token = ?

-- name: ask_to_cancel
-- A request to end; the first one stands.
UPDATE runs SET cancel_by = ?, cancel_at = ?, cancel_note = ?, cancel_seal = ?
WHERE run_id = ? AND cancel_at IS NULL

-- ── reading journals ──

-- name: records
-- A run's journal in order, after a number; so many records at most, or all with -1.
SELECT j.seq, j.chain, j.kind, j.body, j.seal FROM runs r CROSS JOIN journal j ON j.run = r.number
WHERE r.run_id = ? AND j.seq > ? ORDER BY j.seq LIMIT ?

-- name: task_chain
-- The same, of the task's own body only.
SELECT j.seq, j.chain, j.kind, j.body, j.seal FROM runs r CROSS JOIN journal j ON j.run = r.number
WHERE r.run_id = ? AND j.seq > ? AND j.chain = '' ORDER BY j.seq LIMIT ?

-- name: inner_chain
-- The same, of one step's body only.
SELECT j.seq, j.chain, j.kind, j.body, j.seal
FROM runs r CROSS JOIN journal j INDEXED BY journal_by_chain ON j.run = r.number
WHERE r.run_id = ? AND j.seq > ? AND j.chain = ? AND j.chain <> '' ORDER BY j.seq LIMIT ?

-- name: outline
-- Where each record stands and which artifact it carries; of the task's own all, and small ones at once, save inputs.
SELECT j.seq, j.chain, j.seal, j.digest, j.kind, CASE j.chain WHEN '' THEN j.body END,
  CASE WHEN j.chain = '' AND j.kind <> 'step_started' AND length(j.data) <= ? THEN j.data END
FROM runs r CROSS JOIN journal j ON j.run = r.number WHERE r.run_id = ? ORDER BY j.seq

-- name: copies
-- Every artifact that lies in a row, with its run and the number of the record that carries it, 0 for none.
SELECT r.run_id, j.seq, j.digest, j.data FROM journal j JOIN runs r ON r.number = j.run WHERE j.data IS NOT NULL
UNION ALL
SELECT r.run_id, 0, a.digest, a.data FROM artifacts a JOIN runs r ON r.number = a.run WHERE a.data IS NOT NULL

-- name: carried
-- Which records of a run carry an artifact, after a number.
SELECT j.digest, j.seq FROM runs r CROSS JOIN journal j ON j.run = r.number
WHERE r.run_id = ? AND j.seq > ? AND j.digest IS NOT NULL ORDER BY j.seq

-- name: artifacts
-- Artifacts of a run: those carried by records whose numbers are in a JSON list, and those listed by digest.
SELECT j.digest, length(j.data), j.media_type, j.data
FROM runs r CROSS JOIN json_each(:seqs) s CROSS JOIN journal j ON j.run = r.number AND j.seq = s.value
WHERE r.run_id = :run_id AND j.data IS NOT NULL
UNION ALL
SELECT a.digest, a.size, a.media_type, a.data
FROM runs r CROSS JOIN json_each(:digests) d CROSS JOIN artifacts a ON a.run = r.number AND a.digest = d.value
WHERE r.run_id = :run_id

-- ── people ──

-- name: questions
-- Questions, oldest first: of one run or of all, open ones or all.
SELECT q.question_id, r.run_id, q.kind, q.path, q.sentence, q.asked_at, q.body, q.closed
FROM questions q JOIN runs r ON r.number = q.run
WHERE (:run_id IS NULL OR r.run_id = :run_id) AND (:closed OR q.closed = 0) ORDER BY q.number

-- name: question
-- One question, open or not.
SELECT q.question_id, r.run_id, q.kind, q.path, q.sentence, q.asked_at, q.body, q.closed
FROM questions q JOIN runs r ON r.number = q.run WHERE q.question_id = ?

-- name: question_asked
-- Whether a run's journal asks exactly this, in the task's own chain.
SELECT 1 FROM runs r CROSS JOIN journal j ON j.run = r.number
WHERE r.run_id = ? AND j.chain = '' AND j.kind = 'question_asked' AND j.body = ? LIMIT 1

-- name: question_known
-- Whether there is a question of this id in this run.
SELECT 1 FROM questions q JOIN runs r ON r.number = q.run WHERE q.question_id = ? AND r.run_id = ?

-- name: answer_in_place
-- Whose answer stands in a place; none in place 0, where later ones are kept.
SELECT a.question_id, r.run_id, a.choice, a.by, a.at, a.note, a.ref, a.result, a.place,
  a.seal, a.request, a.door, a.role
FROM answers a JOIN questions q USING (question_id) JOIN runs r ON r.number = q.run
WHERE a.question_id = ? AND a.place = ? AND a.place > 0

-- name: add_answer
-- An answer, one that counts or a later one.
INSERT INTO answers (question_id, choice, by, at, note, ref, result, place, seal, request, door, role)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: answers
-- The answers of a run, all or to one of its questions, oldest first.
SELECT a.question_id, r.run_id, a.choice, a.by, a.at, a.note, a.ref, a.result, a.place,
  a.seal, a.request, a.door, a.role
FROM runs r JOIN questions q ON q.run = r.number JOIN answers a ON a.question_id = q.question_id
WHERE r.run_id = :run_id AND (:question_id IS NULL OR q.question_id = :question_id) ORDER BY a.number

-- ── claims ──

-- name: add_claim
-- Own a key nobody owns.
INSERT INTO claims (key, run_id, path, request_digest, at, outcome, ref, result, media_type, seal)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING

-- name: take_claim_over
-- Own a key instead of a named run.
UPDATE claims SET run_id = ?, path = ?, request_digest = ?, at = ?, outcome = ?, ref = ?, result = ?, media_type = ?,
  seal = ?
WHERE key = ? AND run_id = ?

-- name: claim
-- Who owns a key.
SELECT key, run_id, path, request_digest, at, outcome, ref, result, media_type, seal FROM claims WHERE key = ?

-- ── pruning ──

-- name: keep_audit
-- What stays of an ended run; no row when it has not ended.
INSERT INTO audit (run_id, task, family, status, started_at, ended_at, pruned_at, head_seq, head_seal, seal_name, applied)
SELECT r.run_id, r.task, r.family, r.status, r.started_at, r.status_at, :at, r.head_seq, r.head_seal, r.seal_name,
  (SELECT json_group_array(json_object('path', o.body ->> '$.path', 'key', o.body ->> '$.key', 'ref', o.body ->> '$.ref'))
   FROM (SELECT CAST(body AS TEXT) AS body FROM journal
         WHERE run = r.number AND kind = 'outcome_recorded' AND json_valid(CAST(body AS TEXT)) ORDER BY seq) o
   WHERE o.body ->> '$.outcome' = 'applied')
FROM runs r WHERE r.run_id = :run_id AND r.status IN ('done', 'stopped', 'cancelled')

-- name: files_of_run
-- Digests of a run's artifacts that are files.
SELECT a.digest FROM artifacts a JOIN runs r ON r.number = a.run WHERE r.run_id = ? AND a.data IS NULL

-- name: delete_answers
-- The answers of a run that is pruned.
DELETE FROM answers WHERE question_id IN
  (SELECT question_id FROM questions WHERE run = (SELECT number FROM runs WHERE run_id = ?))

-- name: delete_questions
-- The questions of a run that is pruned.
DELETE FROM questions WHERE run = (SELECT number FROM runs WHERE run_id = ?)

-- name: delete_artifacts
-- The artifacts of a run that is pruned.
DELETE FROM artifacts WHERE run = (SELECT number FROM runs WHERE run_id = ?)

-- name: delete_records
-- The journal of a run that is pruned.
DELETE FROM journal WHERE run = (SELECT number FROM runs WHERE run_id = ?)

-- name: delete_run
-- The run itself, last.
DELETE FROM runs WHERE run_id = ?

-- name: file_wanted
-- Whether any run points at a file of this digest.
SELECT 1 FROM artifacts WHERE digest = ? AND data IS NULL LIMIT 1

-- name: all_files
-- Digest and size of every artifact that is a file.
SELECT DISTINCT digest, size FROM artifacts WHERE data IS NULL

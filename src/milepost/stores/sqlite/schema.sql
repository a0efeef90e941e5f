-- The shape of a Milepost store. This file is the truth; migrations/ is the history that leads to it
-- (tests/migration proves they are equal). Times are UTC ISO text given by the caller.

CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE migrations (
  number INTEGER PRIMARY KEY,
  name   TEXT NOT NULL
) STRICT;

-- One row per run: what it is, where it stands, who works on it. `number` is never used again (AUTOINCREMENT),
-- so a row of another table can never come to mean another run.
CREATE TABLE runs (
  number         INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id         TEXT NOT NULL UNIQUE,
  task           TEXT NOT NULL,
  family         TEXT NOT NULL,
  seal_name      TEXT,
  started_at     TEXT NOT NULL,
  token          INTEGER NOT NULL,
  released       INTEGER NOT NULL,
  host           TEXT NOT NULL,
  boot_id        TEXT NOT NULL,
  pid            INTEGER NOT NULL,
  since          TEXT NOT NULL,
  beat           INTEGER NOT NULL,
  beat_at        TEXT NOT NULL,
  status         TEXT NOT NULL,
  status_at      TEXT NOT NULL,
  verified_count INTEGER NOT NULL,
  applied_count  INTEGER NOT NULL,
  next_action    TEXT NOT NULL,
  detail         TEXT NOT NULL,
  head_seq       INTEGER NOT NULL,
  head_seal      BLOB NOT NULL,
  cancel_by      TEXT,
  cancel_at      TEXT,
  cancel_note    TEXT,
  cancel_seal    BLOB,
  shadow         INTEGER NOT NULL DEFAULT 0,
  cost           TEXT NOT NULL DEFAULT '',
  tokens         INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX runs_by_start ON runs (started_at);

-- The journal: append-only, in order of seq per run, body and seal exactly as sealed. `run` takes its number from
-- runs in the INSERT itself, so the hot tables carry no REFERENCES: it made each append cost half as much again.
-- A record's row also carries one small artifact of its batch: a table of their own with an index by digest, which
-- grows at random places, cost a commit as much again as everything else in it. `data` stands last: it is long.
CREATE TABLE journal (
  run        INTEGER NOT NULL,
  seq        INTEGER NOT NULL,
  chain      TEXT NOT NULL,
  kind       TEXT NOT NULL,
  seal       BLOB NOT NULL,
  digest     TEXT,
  media_type TEXT,
  body       BLOB NOT NULL,
  data       BLOB
) STRICT;

CREATE UNIQUE INDEX journal_by_seq ON journal (run, seq);
CREATE INDEX journal_by_chain ON journal (run, chain, seq) WHERE chain <> '';

-- Artifacts no row of the journal carries. `data` is NULL when they are a file of the same digest.
CREATE TABLE artifacts (
  run        INTEGER NOT NULL,
  digest     TEXT NOT NULL,
  size       INTEGER NOT NULL,
  media_type TEXT NOT NULL,
  data       BLOB
) STRICT;

CREATE UNIQUE INDEX artifacts_by_digest ON artifacts (run, digest);
CREATE INDEX artifacts_in_files ON artifacts (digest) WHERE data IS NULL;

CREATE TABLE questions (
  number      INTEGER PRIMARY KEY,
  question_id TEXT NOT NULL UNIQUE,
  run         INTEGER NOT NULL REFERENCES runs (number),
  kind        TEXT NOT NULL,
  path        TEXT NOT NULL,
  sentence    TEXT NOT NULL,
  asked_at    TEXT NOT NULL,
  body        BLOB NOT NULL,
  closed      INTEGER NOT NULL
) STRICT;

CREATE INDEX questions_by_run ON questions (run);

-- All answers. Those that count have a place among the answers to their question; in place 0 later ones are kept.
CREATE TABLE answers (
  number      INTEGER PRIMARY KEY,
  question_id TEXT NOT NULL REFERENCES questions (question_id),
  choice      TEXT NOT NULL,
  by          TEXT NOT NULL,
  at          TEXT NOT NULL,
  note        TEXT NOT NULL,
  ref         TEXT,
  result      BLOB,
  place       INTEGER NOT NULL,
  seal        BLOB,
  request     BLOB,
  door        TEXT NOT NULL,
  role        TEXT NOT NULL
) STRICT;

CREATE INDEX answers_by_question ON answers (question_id);
CREATE UNIQUE INDEX answers_in_place ON answers (question_id, place) WHERE place > 0;

-- Idempotency keys of scope="task", and the newest run of each family. They outlive their run, hence no reference.
CREATE TABLE claims (
  key            TEXT PRIMARY KEY,
  run_id         TEXT NOT NULL,
  path           TEXT NOT NULL,
  request_digest TEXT NOT NULL,
  at             TEXT NOT NULL,
  outcome        TEXT,
  ref            TEXT,
  result         BLOB,
  media_type     TEXT,
  seal           BLOB
) STRICT, WITHOUT ROWID;

-- What stays of a pruned run. `applied` is JSON: path, key and ref of each applied effect.
CREATE TABLE audit (
  run_id     TEXT PRIMARY KEY,
  task       TEXT NOT NULL,
  family     TEXT NOT NULL,
  status     TEXT NOT NULL,
  started_at TEXT NOT NULL,
  ended_at   TEXT NOT NULL,
  pruned_at  TEXT NOT NULL,
  head_seq   INTEGER NOT NULL,
  head_seal  BLOB NOT NULL,
  seal_name  TEXT,
  applied    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

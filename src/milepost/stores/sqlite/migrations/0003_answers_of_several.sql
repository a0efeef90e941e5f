-- Several people answer one question: each answer that counts has a place, and says by which door and in which role.

CREATE TABLE answers_before AS SELECT * FROM answers;
DROP TABLE answers;

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

INSERT INTO answers (number, question_id, choice, by, at, note, ref, result, place, seal, request, door, role)
SELECT number, question_id, choice, by, at, note, ref, result, accepted, seal, NULL, '', '' FROM answers_before;
DROP TABLE answers_before;

CREATE INDEX answers_by_question ON answers (question_id);
CREATE UNIQUE INDEX answers_in_place ON answers (question_id, place) WHERE place > 0;

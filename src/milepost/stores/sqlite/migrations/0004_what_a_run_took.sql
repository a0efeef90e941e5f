-- What models took so far, for the list of runs; the journal is the truth. '' for runs that nobody went on with since.
ALTER TABLE runs ADD COLUMN cost TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;

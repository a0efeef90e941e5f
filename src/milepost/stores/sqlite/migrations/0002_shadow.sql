-- Which runs are shadow runs, for the list of runs; the journal's first record is the truth.
ALTER TABLE runs ADD COLUMN shadow INTEGER NOT NULL DEFAULT 0;

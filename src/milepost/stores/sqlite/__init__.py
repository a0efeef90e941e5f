"""The embedded store: one SQLite file (WAL, FULL), lock files and artifact files beside it."""

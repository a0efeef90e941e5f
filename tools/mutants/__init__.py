"""Planted bugs: `catalogue.toml` holds them, `make mutants` plants each in a copy and shows who notices."""

"""Artifacts that are too large for a row: files named by their digest."""

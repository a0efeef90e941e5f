"""Records as bytes: canonical, whoever writes them, and read back as they were."""

from __future__ import annotations

from dataclasses import MISSING, fields, replace
from typing import Any

import pytest

from milepost.records.canonical import canonical, parse
from milepost.records.model import KINDS, Choice, ErrorRecord, Pointer, Record
from milepost.records.written import decode_record, encode_record

POINTER = Pointer("ab" * 32, 1024, "text/plain", "file")
CHOICES = (Choice("keep", 'does "nothing"'), Choice("applied", "settles it", ("ref", "result")))
HARD_TEXT = 'line\none "quoted" \\ \x00 \u2028 ü 🧭'
VALUES: dict[str, Any] = {
    "str": HARD_TEXT,
    "str | None": HARD_TEXT,
    "int": 7,
    "int | None": 0,
    "bool": True,
    "float": 0.1,
    "float | None": 1e-07,
    "Pointer": POINTER,
    "Pointer | None": POINTER,
    "Data": {"b": [1, None, {"a": HARD_TEXT}], "a": -0.0},
    "Data | None": {"value": None},
    "ErrorRecord": ErrorRecord("ValueError", HARD_TEXT),
    "ErrorRecord | None": ErrorRecord("ValueError", ""),
    "tuple[str, ...]": ("one", HARD_TEXT),
    "tuple[Choice, ...]": CHOICES,
}


def full(kind: str) -> Record:
    """Return a record of a kind with something in every field."""
    return KINDS[kind](**{field.name: VALUES[str(field.type)] for field in fields(KINDS[kind])})


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_record_is_written_canonically_and_read_back_as_it_was(kind: str) -> None:
    """Its bytes are what is sealed; the writer that takes a short way must not take another."""
    data = encode_record(full(kind))
    assert data == canonical(parse(data))
    assert decode_record(kind, data) == full(kind)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_field_that_is_not_set_is_absent_from_what_is_written(kind: str) -> None:
    """Records stay small and old ones readable; the kinds written out by hand leave out what the others do."""
    for field in fields(KINDS[kind]):
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        if default is MISSING or type(default) in (int, float):
            continue
        record = replace(full(kind), **{field.name: default})
        data = encode_record(record)
        assert f'"{field.name}":'.encode() not in data
        assert data == canonical(parse(data))

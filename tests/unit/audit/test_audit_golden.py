"""What was exported once can be checked for ever: the wording, the order and the style of a format are fixed."""

from __future__ import annotations

import json

import pytest
from golden_run import FOLDER, KEY

from milepost.audit.files import FORMS, check_file
from milepost.audit.lines import FORMAT
from milepost.records.model import KINDS


@pytest.mark.parametrize("form", FORMS)
def test_a_file_written_when_the_format_was_fixed_still_holds(form: str) -> None:
    """Who changes how a line reads or looks raises FORMAT; files of the old one name the Milepost that checks them."""
    checked = check_file(FOLDER / f"format-{FORMAT}.{form}", KEY)
    assert checked.missing_key is None
    assert checked.counts["answer"] == 2


def test_every_kind_of_record_stands_in_it() -> None:
    """A new kind is added by `python tests/unit/audit/golden_run.py`, which first checks that nothing else changed."""
    lines = (FOLDER / f"format-{FORMAT}.jsonl").read_text(encoding="ascii").splitlines()
    assert {line["kind"] for line in map(json.loads, lines) if line["is"] == "record"} == set(KINDS)

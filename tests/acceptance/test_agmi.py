"""The conformance suite `agent-memory-integrity` from PyPI, all nine edits at rest: none is accepted in silence."""

from __future__ import annotations

import pytest
from agmi.check import LABELS, main, run
from agmi_adapter import MilepostAdapter, WithoutKey

EDITS = list(LABELS.values())


def test_with_a_seal_key_nine_of_nine_edits_are_rejected_each_for_a_reason() -> None:
    """A crash would count as a detection as well: the reasons tell them apart."""
    rows = run(MilepostAdapter())
    assert {row["edit"]: row["verdict"] for row in rows} == dict.fromkeys(EDITS, "REJECTED")
    for row in rows:
        assert "cannot be trusted" in row["detail"] or "went back" in row["detail"], row


def test_without_a_key_only_a_forger_who_knows_the_format_passes(capsys: pytest.CaptureFixture[str]) -> None:
    """Plain digests can be made by anybody; the documents promise no more. Through the suite's own command."""
    assert main(["--adapter", f"{WithoutKey.__module__}:{WithoutKey.__name__}"]) == 1
    out, error = capsys.readouterr()
    assert out.count("REJECTED") == len(EDITS) - 1
    assert "T5 forged insertion      ACCEPTED" in out
    assert "1 of 9" in error

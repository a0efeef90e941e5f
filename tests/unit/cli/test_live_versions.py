"""What a run says of its versions while it runs: on a terminal as well as in a log."""

from __future__ import annotations

import pytest

from milepost.cli.live import Drawn, View
from milepost.records.model import VersionsNoted

AT = "2026-11-02T08:00:00.000000+00:00"


@pytest.mark.parametrize("kind", [View, Drawn])
def test_other_versions_than_before_are_said(kind: type[View], capsys: pytest.CaptureFixture[str]) -> None:
    """Another model goes on with the run: who resumes it must learn of it without reading the journal."""
    with kind() as shown:
        shown.watch(VersionsNoted(at=AT, what="", old={"model": "m-1"}, new={"model": "m-2"}))
    assert "versions of the task changed: model m-1 → m-2" in " ".join(capsys.readouterr().err.split())

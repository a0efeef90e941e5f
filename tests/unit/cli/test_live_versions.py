"""What a run says of its versions while it runs: on a terminal as well as in a log."""

from __future__ import annotations

import pytest

from milepost.cli.live import Drawn, View
from milepost.records.model import Pointer, RunStarted, VersionsNoted

AT = "2026-11-02T08:00:00.000000+00:00"


def _started(promotion: str | None) -> RunStarted:
    return RunStarted(
        at=AT,
        task="books",
        target={},
        folder="/",
        inputs=Pointer("0" * 64, 2),
        inputs_fingerprint="",
        versions={"model": "m-2"},
        family="live",
        promotion=promotion,
    )


@pytest.mark.parametrize("kind", [View, Drawn])
@pytest.mark.parametrize(
    ("promotion", "said"),
    [
        (
            "promotion-books-1",
            "not as it was promoted (promotion-books-1): versions of the task changed: model m-1 → m-2",
        ),
        (None, "versions of the task changed: model m-1 → m-2"),
    ],
)
def test_other_versions_than_the_promoted_ones_are_said(
    kind: type[View], promotion: str | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody approved another model: who starts the run must learn of it without reading the journal."""
    with kind() as shown:
        shown.watch(_started(promotion))
        shown.watch(VersionsNoted(at=AT, what="", old={"model": "m-1"}, new={"model": "m-2"}))
    assert said in " ".join(capsys.readouterr().err.split())

"""One step or effect in full, for people: its story, output (bounded) and sources. Called by `show --step`."""

from __future__ import annotations

from typing import Any

from milepost.cli.output import say
from milepost.views.evidence import evidence_lines, text_lines
from milepost.views.words import amount, clock_time


def say_checkpoint(found: dict[str, Any]) -> None:
    """Write one checkpoint for people: its story, then the last record's fields, output and sources."""
    say(f"{found['path']} · run {found['run_id']}")
    for record in found["records"]:
        say(f"  {clock_time(record['at'])}  {record['says']}")
    last = {name: value for name, value in found["records"][-1].items() if name not in ("says", "path", "at")}
    say()
    say("last record:")
    for line in evidence_lines(last):
        say(line)
    for what in ("output", "sources"):
        _say_artifact(what, found[what])


def _say_artifact(what: str, artifact: dict[str, Any] | None) -> None:
    if artifact is None:
        return
    say(f"{what}: sha256 {artifact['digest']}, {amount(artifact['size'])}, {artifact['media_type']}")
    value = artifact.get("value")
    shown = text_lines(value) if isinstance(value, str) else evidence_lines(value)
    for line in shown:
        say(line)

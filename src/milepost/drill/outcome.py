"""What came of each trial and of the whole drill: plain data, and how often what happened. No wording for terminals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """How a trial ended."""

    SURVIVED = "survived"  # done, and everything equals the undisturbed run
    ASKED = "asked"  # a person was asked what nobody else can know, or what changed; then as above
    REFUSED = "refused"  # damage was refused by name, nothing ran
    FAILED = "failed"
    UNTRIED = "untried"  # it could not be done here, and why


KINDS = {
    "kill": "killed at a crash point",
    "lost": "answer lost after the provider accepted",
    "timeout": "call timed out, never arrived",
    "busy": "429 with a wait",
    "flip": "one flipped byte in a checkpoint",
    "missing": "artifact missing",
    "cut": "tail of the journal cut off",
    "source": "source changed",
    "versions": "versions changed",
    "race": "two resume at once",
    "frozen": "frozen past its lease, then woken",
}
"""Every kind of trial, as the table names it, in the order of the table."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One trial. `point` names it, and `--point` replays it."""

    kind: str
    point: str
    verdict: Verdict
    record: str = ""  # where the journal stood when it was interrupted
    said: str = ""  # what was asked or refused, or why it failed
    differences: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    seconds: float = 0.0
    output: str = ""  # the last lines the user's code printed, of a failed one

    @property
    def failed(self) -> bool:
        return self.verdict is Verdict.FAILED


@dataclass(frozen=True, slots=True)
class SideEffect:
    """What code did to the outside without declaring it."""

    who: str  # a step's path, or `the plan`
    kind: str  # socket, process, file
    what: str
    line: str  # FILE:LINE


@dataclass(slots=True)
class Report:
    """The whole drill."""

    task: str
    step_count: int = 0
    effect_count: int = 0
    point_count: int = 0
    outcomes: list[Outcome] = field(default_factory=list)
    side_effects: list[SideEffect] = field(default_factory=list)
    unsteady: list[str] = field(default_factory=list)  # calls whose inputs differ between two undisturbed runs
    not_compared: list[str] = field(default_factory=list)  # fields in which two undisturbed runs differ
    hints: list[str] = field(default_factory=list)
    seconds: float = 0.0
    replay: str = ""  # the command that replays one point, without the point

    @property
    def failed(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.failed]

    @property
    def held(self) -> bool:
        """Say whether everything held."""
        return not (self.failed or self.side_effects or self.unsteady)

    def rows(self) -> list[tuple[str, Counter[str]]]:
        """Return for each kind that was tried how often what happened: tried, the verdicts, repeated, skipped."""
        found: list[tuple[str, Counter[str]]] = []
        for kind, about in KINDS.items():
            counted = _counted([outcome for outcome in self.outcomes if outcome.kind == kind])
            if counted:
                found.append((about, counted))
        return found

    def total(self) -> Counter[str]:
        return _counted(self.outcomes)

    def to_json(self) -> dict[str, Any]:
        found = asdict(self)
        found["held"] = self.held
        found["total"] = dict(self.total())
        found["table"] = {about: dict(counted) for about, counted in self.rows()}
        return found


def _counted(outcomes: Sequence[Outcome]) -> Counter[str]:
    found: Counter[str] = Counter()
    for outcome in outcomes:
        found[outcome.verdict.value] += 1
        found["tried"] += outcome.verdict is not Verdict.UNTRIED
        found["repeated"] += len(outcome.repeated)
        found["skipped"] += len(outcome.skipped)
    return found

"""What changed in the versions of a task, a step or a promoted role, and what people accepted of it. Pure.

Found by the runtime, judged by rule 4 of `decide`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from milepost.protocol.snapshot import Snapshot
from milepost.protocol.spec import changed_versions
from milepost.records.frozen import frozen
from milepost.records.model import QuestionKind

SINCE_PROMOTION = "the promotion"


@frozen
class VersionCheck:
    """One version that differs: of the task ('') or of a step."""

    path: str
    old: Mapping[str, str]
    new: Mapping[str, str]
    of_role: bool = False  # since the task was promoted

    @property
    def of(self) -> str:
        """Return what it is of: a step, '' for the task, or what the task's role was when it was promoted."""
        return SINCE_PROMOTION if self.of_role else self.path


def difference_of(check: VersionCheck) -> str:
    """Say what differs in one version, behind the step it is of."""
    return (f"{check.path}: " if check.path else "") + changed_versions(check.old, check.new)


def accepted(s: Snapshot, check: VersionCheck) -> bool:
    """Say whether people accepted exactly this change in this run."""
    if check.of_role:
        return accepted_role(s, check.new)
    last = [new[check.path] for new in _accepted(s) if check.path in new][-1:]
    return last == [dict(check.new)]


def accepted_role(s: Snapshot, new: Mapping[str, str]) -> bool:
    """Say whether people accepted in this run that the role is another in exactly this."""
    facts: dict[str, str] = {}
    for found in _accepted(s):
        facts.update(found.get(SINCE_PROMOTION, {}))
    return all(facts.get(name) == value for name, value in new.items())


def _accepted(s: Snapshot) -> Iterator[Mapping[str, Any]]:
    """Yield what each answer accepted, the newest last: versions by what they are of."""
    for question, _ in s.answered.values():
        if question.question_kind == QuestionKind.VERSIONS_CHANGED:
            yield question.about.get("new", {})

"""What a run's journal says about it: outputs, references, what was repeated and what each resume had not to repeat.

Reads the store; writes nothing and needs no lease. Called by `places`, `books` and `telling`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from milepost.records.model import OutcomeRecorded, Record, RunEnded, RunResumed, StepStarted, StepVerified
from milepost.records.written import decode_record
from milepost.stores.sqlite.store import SqliteStore


@dataclass(slots=True)
class Saved:
    """What the resumes of a run did not do again, each resume counted."""

    step_count: int = 0
    effect_count: int = 0
    token_count: int = 0
    duration_s: float = 0.0


@dataclass(slots=True)
class Journal:
    """The end of a run. `outputs`: step path → digest; `references`: effect path → the provider's reference."""

    verified: dict[str, StepVerified] = field(default_factory=dict)
    applied: dict[str, OutcomeRecorded] = field(default_factory=dict)
    report_digest: str = ""
    start_count: int = 0
    resume_count: int = 0
    saved: Saved = field(default_factory=Saved)

    def outputs(self) -> dict[str, str]:
        """Give the digest of each step's output, by path."""
        return {path: verified.output.digest for path, verified in self.verified.items()}

    def references(self) -> dict[str, str]:
        """Give the provider's reference of each effect, by path."""
        return {path: outcome.ref or "" for path, outcome in self.applied.items()}

    def recovered(self) -> list[OutcomeRecorded]:
        """Give the effects whose outcome was found at the provider, not answered by a send."""
        return [outcome for outcome in self.applied.values() if outcome.recovered]

    def extracted(self) -> list[StepVerified]:
        """Give the checkpoints of the extraction, in the order of the mailbox."""
        return [verified for path, verified in self.verified.items() if path.startswith("extract")]

    def effects(self, name: str) -> list[str]:
        """Give the paths of one effect, in the order of their outcomes."""
        return [path for path in self.applied if path.rpartition("/")[2].startswith(f"{name}[")]


def read_journal(store: Path, run_id: str) -> Journal:
    """Read and fold the journal of a run. Raises: StoreMissing."""
    with closing(SqliteStore(store, create=False)) as opened:
        stored = opened.records(run_id)
    return fold(decode_record(line.kind, line.body) for line in stored)


def fold(records: Iterable[Record]) -> Journal:
    """Fold records, oldest first."""
    journal = Journal()
    for record in records:
        _apply(journal, record)
    return journal


def _apply(journal: Journal, record: Record) -> None:
    match record:
        case StepStarted():
            journal.start_count += 1
        case StepVerified():
            journal.verified[record.path] = record
        case OutcomeRecorded(outcome="applied"):
            journal.applied[record.path] = record
        case RunResumed():
            journal.resume_count += 1
            _add_saved(journal)
        case RunEnded() if record.output is not None:
            journal.report_digest = record.output.digest


def _add_saved(journal: Journal) -> None:
    """Add what stands at the moment of a resume: finished work that it will not do again."""
    saved, checkpoints = journal.saved, list(journal.verified.values())
    saved.step_count += len(checkpoints)
    saved.effect_count += len(journal.applied)
    saved.token_count += sum(map(tokens_of, checkpoints))
    saved.duration_s += sum(one.duration_s for one in _outermost([*checkpoints, *journal.applied.values()]))


def _outermost(records: Sequence[StepVerified | OutcomeRecorded]) -> list[StepVerified | OutcomeRecorded]:
    # An outer step's duration holds those of what it called; an unfinished one has none of its own yet.
    finished = {record.path for record in records}
    return [record for record in records if record.path.rpartition("/")[0] not in finished]


def tokens_of(checkpoint: StepVerified) -> int:
    """Give the tokens that a checkpoint's body spent."""
    spent = checkpoint.spent or {}
    return int(spent.get("input_tokens", 0)) + int(spent.get("output_tokens", 0))

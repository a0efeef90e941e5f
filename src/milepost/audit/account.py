"""The sum of a run, folded from its lines for the top of a printed record: who, what, when, how often it died. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from milepost.audit.contents import read_record, stored_record
from milepost.audit.lines import Line
from milepost.records.model import (
    Data,
    IntentRecorded,
    Outcome,
    OutcomeRecorded,
    Record,
    RunEnded,
    RunResumed,
    RunStarted,
    StepVerified,
    WaitRecorded,
)


def record_of(line: Line) -> Record | None:
    """Return the record a line holds, None for another line or one that cannot be read."""
    return read_record(stored_record(line.content)) if line.content["is"] == "record" else None


@dataclass(slots=True)
class Account:
    """What a whole run comes to."""

    started: RunStarted | None = None
    ended: RunEnded | None = None
    last_at: str = ""
    deaths: int = 0  # resumes after a process that left no word
    counts: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    costs: dict[str, Decimal] = field(default_factory=dict)  # by currency

    def take(self, record: Record) -> None:
        """Fold one record in."""
        self.last_at = record.at
        self.counts[record.kind] += 1
        match record:
            case RunStarted():
                self.started = record
            case RunResumed():
                self.deaths += self.ended is None
                self.ended = None
            case RunEnded():
                self.ended = record
            case StepVerified():
                self._spend(record.spent)
            case OutcomeRecorded():
                self.counts[record.outcome] += 1
                self._spend(record.spent)
            case _:
                pass

    def _spend(self, spent: Data | None) -> None:
        if not spent:
            return
        self.tokens += int(spent.get("input_tokens", 0)) + int(spent.get("output_tokens", 0))
        currency = str(spent.get("currency", ""))
        try:
            self.costs[currency] = self.costs.get(currency, Decimal(0)) + Decimal(str(spent.get("cost", "0")))
        except InvalidOperation:
            return


@dataclass(slots=True)
class Sends:
    """Joins each outcome with the intent before it; holds only what is not applied yet."""

    _open: dict[str, IntentRecorded] = field(default_factory=dict)

    def take(self, record: Record) -> tuple[IntentRecorded | None, OutcomeRecorded] | None:
        """Hear of a record; return intent and outcome when it is an outcome."""
        if isinstance(record, IntentRecorded):
            self._open[record.path] = record
        if not isinstance(record, OutcomeRecorded):
            return None
        intent = self._open.get(record.path)
        if record.outcome == Outcome.APPLIED:
            self._open.pop(record.path, None)
        return intent, record

    def left(self) -> list[IntentRecorded]:
        """Return the intents whose last send is not known to be applied, oldest first."""
        return list(self._open.values())


_PAUSES = frozenset(("cancel_entered", "start_returned", "versions_changed"))


def is_stop(record: Record) -> bool:
    """Say whether a record tells of a stop, a wait, a death or a going on."""
    return isinstance(record, (RunStarted, RunResumed, RunEnded, WaitRecorded)) or record.kind in _PAUSES

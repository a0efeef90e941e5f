"""Journals made by hand, second by second, as the views read them."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from milepost.records.model import (
    ErrorRecord,
    IntentRecorded,
    OutcomeRecorded,
    OutputRecorded,
    Pointer,
    Record,
    RunEnded,
    RunResumed,
    RunStarted,
    RunStatus,
    StepFailedNoted,
    StepStarted,
    StepVerified,
)
from milepost.records.seal import Sealer
from milepost.runtime.opening import Opened
from milepost.stores.contract import Head, Held, Holder, Progress, RunRow, StoredRecord

ZERO = datetime(2026, 11, 1, tzinfo=UTC)
OUTPUT = Pointer("0" * 64, 2)
R = TypeVar("R", bound=Record)


def made(cls: type[R], *values: object, **more: object) -> R:
    """Return a record of its fields in order."""
    names = (field.name for field in fields(cls))
    return cls(**dict(zip(names, values, strict=False)), **more)


def at(seconds: float) -> str:
    return (ZERO + timedelta(seconds=seconds)).isoformat(timespec="microseconds")


def opened(*records: Record, held: bool = False) -> Opened:
    """Return a run as it is read whole: these records and a row that fits them."""
    holder = Held("r", 1, Holder("elsewhere", "boot", 1, at(0)), 1, at(0)) if held else None
    row = RunRow("r", "t", "r", None, at(0), Progress(RunStatus.RUNNING, at(0)), Head(len(records), bytes(32)), holder)
    found = Opened(row, Sealer("r", None))
    found.records = [(StoredRecord(n, r.chain(), r.kind, b"{}", bytes(32)), r) for n, r in enumerate(records, 1)]
    return found


def started(seconds: float) -> RunStarted:
    return made(RunStarted, at(seconds), "t", "t.py:t", "/", OUTPUT, "f", {}, "r")


def resumed(seconds: float, number: int = 1) -> RunResumed:
    return made(RunResumed, at(seconds), number, number + 1, {})


def ended(seconds: float, status: str = "done", **more: object) -> RunEnded:
    return made(RunEnded, at(seconds), status, **more)


def began(seconds: float, path: str, attempt: int = 1) -> StepStarted:
    return made(StepStarted, at(seconds), path, attempt, "f")


def kept(seconds: float, path: str) -> OutputRecorded:
    return made(OutputRecorded, at(seconds), path, 1, OUTPUT)


def verified(seconds: float, path: str, took: float = 1.0, cost: str = "") -> StepVerified:
    spent = {"cost": cost, "currency": "USD"} if cost else None
    return made(StepVerified, at(seconds), path, 1, "f", OUTPUT, duration_s=took, spent=spent)


def failed(seconds: float, path: str, attempt: int = 1) -> StepFailedNoted:
    return made(StepFailedNoted, at(seconds), path, attempt, ErrorRecord("TimeoutError", "slow"))


def intent(seconds: float, path: str, attempt: int = 1) -> IntentRecorded:
    return made(IntentRecorded, at(seconds), path, "post", attempt, "mp1-k", "queue", OUTPUT, "0" * 64)


def outcome(seconds: float, path: str, word: str = "applied", **more: object) -> OutcomeRecorded:
    return made(OutcomeRecorded, at(seconds), path, 1, word, "mp1-k", **more)

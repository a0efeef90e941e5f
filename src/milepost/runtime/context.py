"""What a body may say and ask while it runs: heartbeat, cost, the last attempt's cursor, a durable sleep, its run."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from milepost.errors import BadOption, NotEncodable, OutsideRun
from milepost.protocol.amounts import added, checked_progress, checked_spending
from milepost.protocol.failure import kept_text
from milepost.records.canonical import canonical, parse
from milepost.records.model import HeartbeatRecorded, SpentRecorded
from milepost.records.times import format_time
from milepost.runtime.scope import Scope, current

CURSOR_SIZE_MAX = 4 * 1024
"""Bytes of JSON a heartbeat's cursor may take."""

NOTE_SIZE_MAX = 500
"""Bytes of a heartbeat's note that are kept."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What an attempt said last: how far it was, and the cursor the next attempt can go on from."""

    done: int
    total: int | None
    note: str
    cursor: Any


def heartbeat(done: int, total: int | None = None, note: str = "", *, cursor: Any = None) -> None:
    """Say how far the current step is. `cursor` (JSON, at most 4 KiB) is what the next attempt can read.

    Outside a step it does nothing, so that unit tests need no store.
    Raises: BadOption for what is no number, NotEncodable when the cursor is no JSON or too large, a Signal when the
    run may not write any more.
    Crash: the last heartbeat is durable within 50 ms of being said; an earlier one is found otherwise.
    """
    scope = current.get()
    if scope is None or scope.inside or scope.call is None:
        return
    checked_progress(done, total)
    data = canonical(cursor)
    if len(data) > CURSOR_SIZE_MAX:
        raise NotEncodable(
            where="heartbeat", path="cursor", expected=f"at most {CURSOR_SIZE_MAX} bytes", found=f"{len(data)} bytes"
        )
    record = HeartbeatRecorded(
        at=format_time(scope.run.clock.now()),
        path=scope.path,
        attempt=scope.attempt,
        done=done,
        total=total,
        note=kept_text(note, NOTE_SIZE_MAX),
        cursor=None if cursor is None else {"value": parse(data)},
    )
    scope.check_process("heartbeat")
    scope.run.append((record,))


def last_heartbeat() -> Heartbeat | None:
    """Return what an earlier attempt of the current step said last, None when this is the first."""
    scope = current.get()
    if scope is None:
        return None
    state = scope.run.snapshot.steps.get(scope.path)
    said = state.heartbeat if state is not None else None
    if said is None:
        return None
    return Heartbeat(said.done, said.total, said.note, None if said.cursor is None else said.cursor["value"])


def spent(
    *, input_tokens: int = 0, output_tokens: int = 0, cost: Decimal | float | str = 0, currency: str = "USD"
) -> None:
    """Add model usage to the current step's checkpoint. Outside a run it does nothing.

    `cost` in `currency`, added exactly; several calls add up, the last currency named stands. Where the task limits
    cost or tokens it is recorded at once, so that it counts although the body may never end.
    Raises: BadOption for what is no amount or count. In an effect, what was sent may have arrived: there its outcome
    is recorded first, without what was said wrongly, and the effect's caller is told.
    Crash: what was said is counted, unless the process dies within 50 ms of saying it.
    """
    scope = current.get()
    try:
        said = checked_spending(cost, currency, input_tokens, output_tokens)
    except BadOption as error:
        if scope is None or not scope.sends:
            raise
        scope.misused = scope.misused or error
        return
    if scope is None:
        return
    with scope.run.lock:
        kept = scope.spent
        for name in ("input_tokens", "output_tokens"):
            kept[name] = kept.get(name, 0) + said[name]
        kept["cost"] = str(added(Decimal(kept.get("cost", "0")), Decimal(said["cost"])))
        kept["currency"] = currency
    limits = scope.run.task.limits
    if limits is not None and limits.counts_spending and not scope.run.checking:
        _record_spent(scope, said)


def _record_spent(scope: Scope, said: dict[str, Any]) -> None:
    """Record what was spent. Crash: as `spent`."""
    scope.check_process("spent")
    s = scope.run.snapshot
    effect = s.effects.get(scope.path)
    attempt = effect.last.intent.attempt if effect is not None and effect.last is not None else scope.attempt
    at = format_time(scope.run.clock.now())
    scope.run.append((SpentRecorded(at=at, path=scope.path, attempt=attempt, spent=said),))


def here_or_refused(what: str) -> Scope:
    """Return the scope of whoever calls `what`. Raises: OutsideRun when no run is under way."""
    scope = current.get()
    if scope is None:
        raise OutsideRun(path=what, reason="no run is under way here")
    return scope

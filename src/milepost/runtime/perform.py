"""How each operation of the protocol is carried out, in a thread: `ops` says what each one answers.

Called by both drivers; the asynchronous one replaces what waits or runs users' code, and each has its own `Within`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from milepost.errors import CorruptRecord, LeaseLost, NotEncodable, StoreUnavailable
from milepost.protocol.ops import (
    Append,
    Artifact,
    Ask,
    Body,
    Claim,
    Keep,
    KeepFiles,
    Load,
    LookUp,
    Moment,
    Now,
    Observe,
    Op,
    Outstanding,
    Pace,
    Park,
    ReadSecrets,
    Send,
    SupplyResult,
    TakeClaim,
    Verify,
    Wait,
)
from milepost.records.rows import ClaimRow
from milepost.records.times import format_time, parse_time
from milepost.runtime import bodies, crash
from milepost.runtime.active import ActiveRun
from milepost.runtime.clock import moment
from milepost.runtime.files import keep_path
from milepost.runtime.journal import Entry
from milepost.runtime.leases import me
from milepost.runtime.opening import read_snapshot
from milepost.runtime.pacing import Pacing
from milepost.runtime.scope import RuntimeCall
from milepost.sources import observe, of_path
from milepost.stores.contract import Held

WAKE_S = 1.0
"""Longest sleep of a wait before the wall clock is looked at again, so that a clock that jumps is noticed."""
LULL_S = 2.0
"""How long no other task or thread came to what is missing, before it counts as missing, in seconds."""


def now(run: ActiveRun, call: RuntimeCall, op: Now) -> Moment:
    return moment(run.clock)


def read_secrets(run: ActiveRun, call: RuntimeCall, op: ReadSecrets) -> None:
    """Read them where the body will, in this process's environment; from then on `redact` knows their values."""
    for secret in op.secrets:
        secret.read()


def append(run: ActiveRun, call: RuntimeCall, op: Append) -> None:
    """Append records, held at the gate when something starts after them. Crash: as `appended`."""
    if op.starts:
        gate(run)
    entry = appended(run, op)
    if op.wait:
        try:
            entry.ticket.wait()
        except (LeaseLost, StoreUnavailable) as error:
            raise run.broken_by(error) from error
        run.journal.durable(entry)


def appended(run: ActiveRun, op: Append) -> Entry:
    """Seal and append; its ticket is not waited for. Crash: none of it, or all of it."""
    entry = run.append(op.records, op.artifacts, op.claims)
    if crash.armed is not None:
        crash.armed(op.label, "done")
    return entry


def gate(run: ActiveRun) -> None:
    """Hold a start while the run asks; raise when nothing may start any more."""
    if holds_starts(run):
        park(run)
    refuse_start(run)


def holds_starts(run: ActiveRun) -> bool:
    """Say whether a branch that wants to start is parked: another one asks or waits."""
    return run.asking or run.waiting is not None


def refuse_start(run: ActiveRun) -> None:
    """Raise the signal that unwinds when nothing may start any more."""
    obstacle = run.obstacle()
    if obstacle is not None:
        raise obstacle


def park(run: ActiveRun) -> None:
    """Wait until no body runs any more or the run has to stop, then raise the signal that unwinds."""
    run.park()
    try:
        run.bell.wait(lambda: run.obstacle() is not None)
    finally:
        run.unpark()
    raise run.obstacle() or AssertionError


def ask(run: ActiveRun, call: RuntimeCall, op: Ask) -> None:
    """Record a question and park. Crash: not asked, and the next resume asks; or asked."""
    if run.first_to_ask(op.once):
        append(run, call, asked(op))
    run.asking = True
    if not op.ahead:
        park(run)


def park_here(run: ActiveRun, call: RuntimeCall, op: Park) -> None:
    """Unwind this branch with the others: its question was asked ahead."""
    run.asking = True
    park(run)


def asked(op: Ask) -> Append:
    return Append((op.question,), (op.evidence,) if op.evidence else (), wait=not op.ahead)


def wait(run: ActiveRun, call: RuntimeCall, op: Wait) -> None:
    """Wait for a recorded time, or leave with --no-wait; cut short when the run asks or stops."""
    remaining = countdown(run, parse_time(op.until))
    if remaining() <= 0:
        return
    note_waiting(run, op)
    if not run.options.wait:
        park(run)
    run.park()
    try:
        while (left := remaining()) > 0 and not interrupted(run):
            run.bell.wait(lambda: interrupted(run), min(left, WAKE_S))
    finally:
        run.unpark()
    gate(run)


def await_outstanding(run: ActiveRun, call: RuntimeCall, op: Outstanding) -> list[str]:
    """Return what a call may be and nobody came to, having waited for other tasks and threads while they come."""
    run.watched = True
    while left := still_outstanding(call, op):
        if not run.bell.wait(lambda: interrupted(run) or still_outstanding(call, op) != left, LULL_S):
            break
        gate(run)
    gate(run)
    return left


def still_outstanding(call: RuntimeCall, op: Outstanding) -> list[str]:
    return call.scope.expected.outstanding(call, op.request_digest)


def pace(run: ActiveRun, call: RuntimeCall, op: Pace) -> str | None:
    """Keep a place for one more send under a rate; return the time it has to wait for, None when that is now."""
    with run.lock:
        if run.pace is None:
            run.pace = Pacing(op.rate, run.snapshot.used.sent, run.clock.now())
        now = run.clock.now()
        place = run.pace.next_place(now)
    return format_time(place) if place > now else None


def note_waiting(run: ActiveRun, op: Wait) -> None:
    """Tell whoever watches what is waited for; with --no-wait, note that the run leaves."""
    if run.options.waiting is not None:
        run.options.waiting(op.until, op.reason)
    if run.options.wait:
        run.clock.about_to_wait(parse_time(op.until))
    else:
        run.waiting = min(run.waiting or (op.until, op.reason), (op.until, op.reason))


def countdown(run: ActiveRun, until: datetime) -> Callable[[], float]:
    """Return what tells the seconds left until a time: a clock that is set back meanwhile does not add any."""

    def wall() -> float:
        return (until - run.clock.now()).total_seconds()

    at_first, began = wall(), run.clock.ticks()
    return lambda: min(wall(), at_first - (run.clock.ticks() - began))


def interrupted(run: ActiveRun) -> bool:
    """Say whether a wait has to end before its time."""
    return run.asking or run.waiting is not None or run.obstacle() is not None


# ── artifacts and sources ───────────────────────────────────────────────────────────────────────────


def keep(run: ActiveRun, call: RuntimeCall, op: Keep) -> Artifact:
    """Make bytes durable as a file. Crash: a file that no record points at, which `doctor` lists."""
    try:
        return run.journal.artifacts.keep(op.data, op.media_type)
    except StoreUnavailable as error:
        raise run.broken_by(error) from error


def keep_files(run: ActiveRun, call: RuntimeCall, op: KeepFiles) -> tuple[list[dict[str, Any]], list[Artifact]]:
    """Make the files of an output durable. Raises: NotEncodable when one is not there. Crash: as `keep`."""
    entries: list[dict[str, Any]] = []
    artifacts: list[Artifact] = []
    for path in op.paths:
        if not os.path.lexists(path):
            raise NotEncodable(where=f"output of {call.path}", path=path, expected="an existing file", found="nothing")
        entries.append(keep_path(run.journal.artifacts, Path(path), artifacts))
    return entries, artifacts


def load(run: ActiveRun, call: RuntimeCall, op: Load) -> bytes:
    """Load an artifact. A damaged one ends the journey, whatever the plan catches: it is no failure of a step."""
    try:
        return run.journal.artifacts.load(op.pointer, op.what)
    except CorruptRecord as error:
        if run.checking:
            raise
        raise run.broken_by(error) from error


def look_at(run: ActiveRun, call: RuntimeCall, op: Observe) -> list[Any]:
    return [observe(as_source(descriptor), seal_key=run.seal_key) for descriptor in op.descriptors]


def as_source(descriptor: Mapping[str, Any]) -> dict[str, Any]:
    if descriptor["kind"] == "path":
        return of_path(Path(descriptor["path"])).descriptor()
    return dict(descriptor)


# ── effects ─────────────────────────────────────────────────────────────────────────────────────────


def claim(run: ActiveRun, call: RuntimeCall, op: Claim) -> ClaimRow:
    return _claim(run, call, op.key, op.request_digest, None)


def take_claim(run: ActiveRun, call: RuntimeCall, op: TakeClaim) -> ClaimRow:
    """Take a key over while the lease of its owner is ours: so nobody can send under it meanwhile.

    Crash: the owner's lease is free again for whoever starts it; the key is the owner's or ours.
    """
    store, owner = run.journal.store, op.owner.run_id
    if not op.accepted and _may_have_sent(run, op.owner):
        return op.owner
    lease = store.acquire(owner, me(run.clock))
    if isinstance(lease, Held):
        return op.owner
    try:
        if not op.accepted and _may_have_sent(run, op.owner):
            return op.owner
        return _claim(run, call, op.key, op.request_digest, owner)
    finally:
        if lease is not None:
            store.release(lease)


def _may_have_sent(run: ActiveRun, owner: ClaimRow) -> bool:
    """Say whether a run may have sent under the key it owns; one whose records cannot be trusted may have."""
    if run.journal.store.run(owner.run_id) is None:
        return True
    opened = read_snapshot(run.journal.store, owner.run_id, run.seal_key)
    state = opened.snapshot.effects.get(owner.path)
    if opened.refusal is not None or opened.snapshot.in_doubt:
        return True
    return state is not None and (state.applied is not None or bool(state.open_sends))


def _claim(run: ActiveRun, call: RuntimeCall, key: str, request_digest: str, instead_of: str | None) -> ClaimRow:
    """Own a key or learn who does; a row that was not written with our seal key ends the journey.

    Crash: the key is as it was, or ours without an intent, which the next resume goes on from.
    """
    sealer = run.journal.sealer
    row = sealer.sealed(ClaimRow(key, run.run_id, call.path, request_digest, format_time(run.clock.now())))
    try:
        owner = run.journal.store.claim(row, run.lease.token, instead_of=instead_of)
        sealer.check_row(owner)
    except (LeaseLost, StoreUnavailable, CorruptRecord) as error:
        raise run.broken_by(error) from error
    return owner


Handler = Callable[[ActiveRun, Any, Any], Any]

PERFORM: dict[type[Op], Handler] = {
    Now: now,
    ReadSecrets: read_secrets,
    Append: append,
    Keep: keep,
    KeepFiles: keep_files,
    Load: load,
    Observe: look_at,
    Body: bodies.body,
    Send: bodies.send,
    SupplyResult: bodies.supply,
    Verify: bodies.verify,
    LookUp: bodies.look_up,
    Wait: wait,
    Outstanding: await_outstanding,
    Pace: pace,
    Ask: ask,
    Park: park_here,
    Claim: claim,
    TakeClaim: take_claim,
}

"""How each operation of the protocol is carried out, in a thread. The asynchronous driver replaces a few of these."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from milepost.errors import CorruptRecord, NotEncodable, Signal, UnavailableError
from milepost.protocol.keys import Key
from milepost.protocol.ops import (
    Append,
    Artifact,
    Ask,
    Body,
    Claim,
    ClaimState,
    Ended,
    Keep,
    KeepFiles,
    Load,
    LookUp,
    MaySend,
    Moment,
    Now,
    Observe,
    Op,
    Send,
    Straggler,
    TakeClaim,
    Verify,
    Wait,
    Within,
)
from milepost.protocol.outcomes import CannotTell, Found, NotFound
from milepost.protocol.snapshot import format_time, parse_time
from milepost.records.arguments import ArgumentsCodec
from milepost.records.model import ClaimRow
from milepost.runtime import crash
from milepost.runtime.active import ActiveRun
from milepost.runtime.files import keep_path
from milepost.runtime.scope import RuntimeCall, Scope, current
from milepost.sources import observe, of_path
from milepost.stores.contract import Ticket

WAKE_S = 1.0
"""Longest sleep of a wait before the wall clock is looked at again, so that a clock that jumps is noticed."""


def now(run: ActiveRun, call: RuntimeCall, op: Now) -> Moment:
    at = run.clock.now()
    return Moment(at, format_time(at), run.clock.ticks())


def append(run: ActiveRun, call: RuntimeCall, op: Append) -> None:
    if op.starts:
        gate(run)
    ticket = appended(run, op)
    if op.wait:
        head = run.journal.head
        try:
            ticket.wait()
        except BaseException as error:
            raise run.failed(error) from error
        run.journal.durable(head)


def appended(run: ActiveRun, op: Append) -> Ticket:
    """Seal and append; the ticket is not waited for. Crash: none of it, or all of it."""
    if run.checking:
        raise Reached(op)
    if run.broken is not None:
        raise run.obstacle() or AssertionError
    try:
        ticket = run.journal.append(op.records, op.artifacts, op.claims)
    except BaseException as error:
        raise run.failed(error) from error
    if crash.armed is not None:
        crash.armed(op.label, "done")
    return ticket


class Reached(Signal):
    """A check replayed the plan up to the first thing a resume would record."""

    def __init__(self, op: Append) -> None:
        self.op = op
        super().__init__(op.label)


def gate(run: ActiveRun) -> None:
    """Hold a start while the run asks; raise when nothing may start any more."""
    if run.asking or run.waiting is not None:
        park(run)
    obstacle = run.obstacle()
    if obstacle is not None:
        raise obstacle


def park(run: ActiveRun) -> None:
    run.park()
    try:
        run.bell.wait(lambda: run.obstacle() is not None)
    finally:
        run.unpark()
    raise run.obstacle() or AssertionError


def ask(run: ActiveRun, call: RuntimeCall, op: Ask) -> None:
    append(run, call, asked(op))
    run.asking = True
    park(run)


def asked(op: Ask) -> Append:
    return Append((op.question,), (op.evidence,) if op.evidence else (), wait=True)


def wait(run: ActiveRun, call: RuntimeCall, op: Wait) -> None:
    until = parse_time(op.until)
    if run.clock.now() >= until:
        return
    note_waiting(run, op)
    if not run.options.wait:
        park(run)
    run.park()
    try:
        while (left := remaining(run, until)) > 0 and not interrupted(run):
            run.bell.wait(lambda: interrupted(run), min(left, WAKE_S))
    finally:
        run.unpark()
    gate(run)


def note_waiting(run: ActiveRun, op: Wait) -> None:
    """Tell whoever watches what is waited for; with --no-wait, note that the run leaves."""
    if run.options.waiting is not None:
        run.options.waiting(op.until, op.reason)
    if run.options.wait:
        run.clock.about_to_wait(parse_time(op.until))
    else:
        run.waiting = min(run.waiting or (op.until, op.reason), (op.until, op.reason))


def remaining(run: ActiveRun, until: Any) -> float:
    left: timedelta = until - run.clock.now()
    return left.total_seconds()


def interrupted(run: ActiveRun) -> bool:
    return run.asking or run.waiting is not None or run.obstacle() is not None


# ── users' functions ────────────────────────────────────────────────────────────────────────────────


def body(run: ActiveRun, call: RuntimeCall, op: Body) -> Ended:
    state = run.snapshot.steps.get(call.path)
    scope = Scope(run, call.path, call if call.scope is not None else None, state.attempt if state else 1)
    return run_in(scope, lambda: call.spec.function(*call.args, **(call.kwargs or {})))


def send(run: ActiveRun, call: RuntimeCall, op: Send) -> Ended:
    scope = Scope(run, call.path, call, 0)
    args, kwargs = recorded_arguments(call)
    return run_in(scope, lambda: call.spec.function(Key(op.key), *args, **kwargs))


def recorded_arguments(call: RuntimeCall) -> tuple[tuple[object, ...], dict[str, object]]:
    """Return the arguments as they come back from the record, so that a first send equals every later one."""
    arguments: ArgumentsCodec = call.spec.arguments
    return arguments.spread({**call.bound, **arguments.decode(call.encoded)})


def within(run: ActiveRun, call: RuntimeCall, op: Within) -> Any:
    from milepost.runtime.drive import drive

    return drive(op.steps, run, op.call)


def run_in(scope: Scope, function: Callable[[], object]) -> Ended:
    """Run a body in its scope and wait for the steps it started."""
    began = scope.run.clock.ticks()
    token = current.set(scope)
    value: object = None
    error: BaseException | None = None
    try:
        value = function()
    except BaseException as raised:  # noqa: BLE001 – whatever it is, the protocol decides what it means
        error = raised
    finally:
        current.reset(token)
    if scope.active:
        scope.run.watched = True
        scope.run.bell.wait(lambda: scope.active == 0)
    return ended(scope, value, error, began)


def ended(scope: Scope, value: object, error: BaseException | None, began: float) -> Ended:
    """Judge how a body ended: a signal raised inside it counts whatever the body swallowed (sticky)."""
    if scope.signalled is not None:
        error = scope.signalled
    elif isinstance(error, BaseExceptionGroup):
        error = signal_in(error) or error
    if error is None:
        scope.note_caught()
    return Ended(
        value,
        error,
        scope.run.clock.ticks() - began,
        scope.spent or None,
        uncalled=scope.uncalled() if error is None else (),
    )


def signal_in(group: BaseExceptionGroup[BaseException]) -> Signal | None:
    """Return a signal hidden in an exception group."""
    found = group.subgroup(Signal)
    while isinstance(found, BaseExceptionGroup):
        first = found.exceptions[0]
        if isinstance(first, Signal):
            return first
        found = first if isinstance(first, BaseExceptionGroup) else None
    return None


def verify(run: ActiveRun, call: RuntimeCall, op: Verify) -> tuple[str, str] | None:
    for verifier in call.spec.verifiers:
        try:
            verdict = verifier.call(op.output, **{name: call.bound[name] for name in verifier.inputs})
        except Exception as error:  # noqa: BLE001 – a user's verifier that raises has failed the output
            return verifier.name, raised_in(error)
        problem = refusal(verdict)
        if problem is not None:
            return verifier.name, problem
    return None


def raised_in(error: BaseException) -> str:
    from milepost.protocol.failure import error_record

    return str(error_record(error))


def refusal(verdict: object) -> str | None:
    """Read a verdict: None and True pass; False, a sentence and anything else fail."""
    if verdict is None or verdict is True:
        return None
    if verdict is False:
        return "it said no"
    return (
        verdict
        if isinstance(verdict, str)
        else f"it returned {type(verdict).__name__}, expected True, None or a sentence"
    )


def look_up(run: ActiveRun, call: RuntimeCall, op: LookUp) -> Found[Any] | NotFound | CannotTell:
    try:
        args, kwargs = recorded_arguments(call)
        return answer_of(call.spec.lookup(Key(op.key), *args, **kwargs))
    except Exception as error:  # noqa: BLE001 – a user's lookup that raises could not ask: cannot tell
        return CannotTell(raised_in(error))


def answer_of(answer: object) -> Found[Any] | NotFound | CannotTell:
    if isinstance(answer, (Found, NotFound, CannotTell)):
        return answer
    return CannotTell(f"the lookup returned {type(answer).__name__}, expected Found, NotFound or CannotTell")


# ── artifacts and sources ───────────────────────────────────────────────────────────────────────────


def keep(run: ActiveRun, call: RuntimeCall, op: Keep) -> Artifact:
    try:
        return run.journal.artifacts.keep(op.data, op.media_type)
    except UnavailableError as error:
        raise run.failed(error) from error


def keep_files(run: ActiveRun, call: RuntimeCall, op: KeepFiles) -> tuple[list[dict[str, Any]], list[Artifact]]:
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
        run.lose(error)
        raise (run.obstacle() or AssertionError) from error


def look_at(run: ActiveRun, call: RuntimeCall, op: Observe) -> list[Any]:
    return [observe(as_source(descriptor), seal_key=run.seal_key) for descriptor in op.descriptors]


def as_source(descriptor: Mapping[str, Any]) -> dict[str, Any]:
    if descriptor["kind"] == "path":
        return of_path(Path(descriptor["path"])).descriptor()
    return dict(descriptor)


# ── effects ─────────────────────────────────────────────────────────────────────────────────────────


def may_send(run: ActiveRun, call: RuntimeCall, op: MaySend) -> bool:
    if run.broken is not None:
        raise run.obstacle() or AssertionError
    return run.clock.ticks() - op.ticks <= run.lease_s / 3


def straggler(run: ActiveRun, call: RuntimeCall, op: Straggler) -> tuple[int, Ended] | None:
    late = run.stragglers.get(call.path)
    if not late:
        return None
    attempt, future = late.pop()
    return attempt, future.result()


def claim(run: ActiveRun, call: RuntimeCall, op: Claim) -> ClaimRow:
    return _claim(run, call, op.key, op.request_digest, None)


def take_claim(run: ActiveRun, call: RuntimeCall, op: TakeClaim) -> ClaimRow:
    return _claim(run, call, op.key, op.request_digest, op.instead_of)


def _claim(run: ActiveRun, call: RuntimeCall, key: str, request_digest: str, instead_of: str | None) -> ClaimRow:
    row = ClaimRow(key, run.run_id, call.path, request_digest, format_time(run.clock.now()))
    try:
        return run.journal.store.claim(row, run.lease.token, instead_of=instead_of)
    except BaseException as error:
        raise run.failed(error) from error


def claim_state(run: ActiveRun, call: RuntimeCall, op: ClaimState) -> str:
    from milepost.runtime.opening import read_snapshot

    owner = op.owner
    row = run.journal.store.run(owner.run_id)
    if row is None:
        return "unsent"
    snapshot = read_snapshot(run.journal.store, owner.run_id, run.seal_key).snapshot
    state = snapshot.effects.get(owner.path)
    if state is not None and (state.applied is not None or state.open_sends):
        return "open"
    return "held" if row.held is not None and row.progress.status == "running" else "unsent"


Handler = Callable[[ActiveRun, Any, Any], Any]

PERFORM: dict[type[Op], Handler] = {
    Now: now,
    Append: append,
    Keep: keep,
    KeepFiles: keep_files,
    Load: load,
    Observe: look_at,
    Body: body,
    Send: send,
    Verify: verify,
    LookUp: look_up,
    Wait: wait,
    Ask: ask,
    MaySend: may_send,
    Straggler: straggler,
    Claim: claim,
    TakeClaim: take_claim,
    ClaimState: claim_state,
    Within: within,
}

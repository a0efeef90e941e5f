"""Users' functions, each in a scope of its own, and how it ended. Here in a thread; `adrive` has the rest.

A body is over when the calls it made are over. What holds no calls (an effect, a verifier, a lookup) has a scope that
refuses them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from milepost.errors import MilepostError, Signal
from milepost.protocol.failure import error_record, kept_text
from milepost.protocol.keys import Key
from milepost.protocol.ops import Body, Ended, LookUp, Send, SupplyResult, Verify
from milepost.protocol.outcomes import CannotTell, Found, NotFound
from milepost.protocol.spec import Verifier
from milepost.records.arguments import ArgumentsCodec
from milepost.runtime import crash
from milepost.runtime.active import ActiveRun
from milepost.runtime.guarded import entered, left
from milepost.runtime.scope import SENDING, RuntimeCall, Scope, current


def body(run: ActiveRun, call: RuntimeCall, op: Body) -> Ended:
    """Run the function of a step, or the plan."""
    return run_in(scope_of_body(run, call), call.spec.function, call.args, call.kwargs or {})


def send(run: ActiveRun, call: RuntimeCall, op: Send) -> Ended | None:
    """Run the function of an effect with its key and its recorded arguments: this reaches the provider."""
    if not may_send(run, op):
        return None
    args, kwargs = recorded_arguments(call)
    function = crash.function_to_send(call)
    return run_in(scope_of_effect(run, call), function, (Key(op.key), *args), kwargs)


def may_send(run: ActiveRun, op: Send) -> bool:
    """Say whether what was intended may still be sent; a signal when the lease is lost."""
    if run.broken is not None:
        raise run.obstacle() or AssertionError
    if run.stop_signal is not None or run.cancelling:
        return False  # heard while the intent became durable
    return run.clock.ticks() - op.ticks <= run.lease_s / 3


def supply(run: ActiveRun, call: RuntimeCall, op: SupplyResult) -> Ended:
    """Run an effect's shadow= on its recorded arguments, on the loop too: it computes a value and reaches nothing."""
    args, kwargs = recorded_arguments(call)
    scope = Scope(run, call.path, call, inside=f"the shadow of {call.spec.name}")
    return run_in(scope, call.spec.shadow, args, kwargs)


def scope_of_body(run: ActiveRun, call: RuntimeCall) -> Scope:
    """Return a new scope for the body of a step; of the plan, which no call made."""
    state = run.snapshot.steps.get(call.path)
    return Scope(run, call.path, call if call.scope is not None else None, state.attempt if state else 1)


def scope_of_effect(run: ActiveRun, call: RuntimeCall) -> Scope:
    """Return a new scope for an effect's function, which holds no calls."""
    return Scope(run, call.path, call, inside=f"{SENDING} {call.spec.name}")


def recorded_arguments(call: RuntimeCall) -> tuple[tuple[object, ...], dict[str, object]]:
    """Return the arguments as they come back from the record, so that a first send equals every later one."""
    arguments: ArgumentsCodec = call.spec.arguments
    return arguments.spread({**call.bound, **arguments.decode(call.encoded)})


# ── how a body ends ─────────────────────────────────────────────────────────────────────────────────


def run_in(scope: Scope, function: Callable[..., object], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Ended:
    """Run a body in its scope and wait for the calls it made."""
    began = scope.run.clock.ticks()
    outer = current.get()
    value: object = None
    error: BaseException | None = None
    try:
        current.set(scope)
        entered(scope)
        value = function(*args, **kwargs)
    except BaseException as raised:  # noqa: BLE001 – whatever it is, the protocol decides what it means
        error = raised
    finally:
        current.set(outer)
        left(scope)
    if error is not None and scope.pid != os.getpid():
        raise error  # a forked child unwinds through here: its end is its own, nothing of the run
    while not scope.end():
        scope.run.bell.wait(scope.is_quiet)
    return ended(scope, value, error, began)


def ended(scope: Scope, value: object, error: BaseException | None, began: float) -> Ended:
    """Judge how a body ended: a signal raised inside it counts whatever the body swallowed (sticky)."""
    if scope.signalled is not None:
        error = scope.signalled
    elif scope.undeclared is not None:
        error = scope.undeclared
    elif isinstance(error, BaseExceptionGroup):
        error = signal_in(error) or error
    if error is None or isinstance(error, (Signal, MilepostError)):
        forgotten = scope.forgotten()  # beside an error of ours nothing more is said, of the plan's own Python warns
        error = error or forgotten
    if error is None and scope.unheard is not None:
        error = scope.unheard.take()
    uncalled: Sequence[str] = ()
    if error is None:
        scope.note_caught()
        uncalled = scope.expected.uncalled()
    return Ended(value, error, scope.run.clock.ticks() - began, scope.spent or None, uncalled, scope.misused)


def signal_in(group: BaseExceptionGroup[BaseException]) -> Signal | None:
    """Return a signal hidden in an exception group."""
    for error in group.exceptions:
        found = signal_in(error) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(found, Signal):
            return found
    return None


# ── verifiers and lookups ───────────────────────────────────────────────────────────────────────────


@contextmanager
def without_calls(run: ActiveRun, call: RuntimeCall, inside: str) -> Iterator[None]:
    """Refuse steps and effects meanwhile."""
    scope = Scope(run, call.path, call if call.scope is not None else None, inside=inside)
    token = current.set(scope)
    entered(scope)
    try:
        yield
    finally:
        current.reset(token)
        left(scope)


def verify(run: ActiveRun, call: RuntimeCall, op: Verify) -> tuple[str, str] | None:
    """Ask each verifier in order; return the name and the reason of the first that refuses."""
    for verifier in call.spec.verifiers:
        try:
            with without_calls(run, call, f"verifier {verifier.name}"):
                problem = refusal(verdict_of(call, verifier, op.output))
        except Exception as error:  # noqa: BLE001 – a user's verifier that raises has failed the output
            problem = raised_in(error)
        if problem is not None:
            return verifier.name, problem
    return None


def verdict_of(call: RuntimeCall, verifier: Verifier, output: object) -> object:
    """Return what a verifier says of an output; an asynchronous one says it when it is awaited."""
    return verifier.call(output, **{name: call.bound[name] for name in verifier.inputs})


def raised_in(error: BaseException) -> str:
    """Return what a user's function raised as it may be kept: redacted and cut."""
    return str(error_record(error))


def refusal(verdict: object) -> str | None:
    """Read a verdict: None and True pass; False, a sentence and anything else fail."""
    if verdict is None or verdict is True:
        return None
    if verdict is False:
        return "it said no"
    if isinstance(verdict, str):
        return verdict
    return f"it returned {type(verdict).__name__}, expected True, None or a sentence"


def look_up(run: ActiveRun, call: RuntimeCall, op: LookUp) -> Found[Any] | NotFound | CannotTell:
    """Ask the provider through the user's lookup."""
    try:
        with without_calls(run, call, f"the lookup of {call.spec.name}"):
            return answer_of(call, answer(call, op.key))
    except Exception as error:  # noqa: BLE001 – a user's lookup that raises could not ask: cannot tell
        return CannotTell(raised_in(error))


def answer(call: RuntimeCall, key: str) -> object:
    """Return what a lookup says of a key; an asynchronous one says it when it is awaited."""
    args, kwargs = recorded_arguments(call)
    return call.spec.lookup(Key(key), *args, **kwargs)


def answer_of(call: RuntimeCall, said: object) -> Found[Any] | NotFound | CannotTell:
    """Read a lookup's answer: what is not one of the three, or finds what the effect cannot return, is cannot-tell."""
    if isinstance(said, CannotTell):
        return CannotTell(kept_text(str(said.reason)))
    if isinstance(said, Found):
        try:
            call.spec.output.round_trip(said.result)
        except MilepostError as error:
            return CannotTell(kept_text(f"the lookup of {call.spec.name} found a result it cannot return: {error}"))
    if isinstance(said, (Found, NotFound)):
        return said
    return CannotTell(f"the lookup returned {type(said).__name__}, expected Found, NotFound or CannotTell")

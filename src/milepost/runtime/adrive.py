"""The asynchronous driver: the same protocol on an event loop. Only what waits or runs users' code differs.

Every call runs in an asyncio task of its own (`shield` says why): a cancellation reaches what may be cancelled, a
user's function or a wait, and nothing else.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, cast

from milepost.errors import LeaseLost, MilepostError, Signal, StoreUnavailable
from milepost.protocol.keys import Key
from milepost.protocol.landing import landed_late
from milepost.protocol.ops import (
    Append,
    Ask,
    Body,
    Ended,
    KeepFiles,
    LookUp,
    Observe,
    Op,
    Outstanding,
    Park,
    Send,
    Steps,
    Verify,
    Wait,
    Within,
)
from milepost.protocol.outcomes import CannotTell, Found, NotApplied, NotFound
from milepost.protocol.spec import EffectSpec
from milepost.records.times import parse_time
from milepost.runtime import bodies, crash, perform
from milepost.runtime.active import ActiveRun
from milepost.runtime.drive import ahead_of, protocol_of
from milepost.runtime.guarded import entered, left
from milepost.runtime.looking import only_look
from milepost.runtime.perform import PERFORM
from milepost.runtime.postbox import Postbox, postbox
from milepost.runtime.scope import RuntimeCall, Scope, current
from milepost.runtime.shield import outlive
from milepost.runtime.unheard import Unheard, told_by_the_run
from milepost.stores.contract import Ticket

_THREADS_MAX = 64
"""Synchronous bodies of one process that may run at once under asynchronous tasks."""
_pool = ThreadPoolExecutor(_THREADS_MAX, thread_name_prefix="milepost-body")


async def drive_ahead_async(call: RuntimeCall) -> None:
    """As `drive_ahead`, without blocking the loop. Crash: the same."""
    try:
        call.scope.enter(call)
        await outlived(drive_async(ahead_of(call), call.scope.run, call), call)
    except Signal as raised:
        call.scope.signal(raised)
        raise
    finally:
        call.scope.leave(call)


async def drive_call_async(call: RuntimeCall) -> Any:
    """Bring one named call to its end without blocking the loop."""
    scope = call.scope
    try:
        scope.enter(call)
        value = await outlived(drive_async(protocol_of(call), scope.run, call), call)
        if isinstance(call.spec, EffectSpec):
            scope.run.sent_here.add(call.path)
        return value
    except Signal as raised:
        scope.signal(raised)
        told_by_the_run(scope.home)
        raise
    except MilepostError as error:
        scope.failed(call, error)
        raise
    finally:
        if call.given_up is None:
            scope.leave(call)
        else:
            scope.run.keep_going(asyncio.ensure_future(_until_its_thread_ends(call, call.given_up)))


def outlived(work: Coroutine[Any, Any, Any], call: RuntimeCall) -> Coroutine[Any, Any, Any]:
    """Carry out what brings a call to its end; a cancellation is passed on to users' functions and waits only."""
    return outlive(work, partial(_hear_cancelled, call), call.named_by)


def _hear_cancelled(call: RuntimeCall, task: asyncio.Task[Any], passed_on: bool) -> None:
    call.cancelled = call.cancelled or passed_on
    if passed_on and call.in_body:
        task.cancel()


async def _until_its_thread_ends(call: RuntimeCall, thread: Future[Ended | None]) -> None:
    """Wait for a body that was given up and still runs; an effect that lands late is recorded as such.

    Only then is the call over for the body that made it. Crash: the outcome stays unknown.
    """
    try:
        ended = await asyncio.shield(asyncio.wrap_future(thread))
        if ended is not None and isinstance(call.spec, EffectSpec):
            await drive_async(landed_late(call, ended), call.scope.run, call)
    except Signal:
        return  # nothing may be written any more: the intent stays open
    finally:
        call.scope.leave(call)


async def drive_async(protocol: Steps[Any], run: ActiveRun, call: RuntimeCall) -> Any:
    """Carry out a protocol to its end and return its result."""
    reply: Any = None
    error: BaseException | None = None
    while True:
        try:
            op = protocol.send(reply) if error is None else protocol.throw(error)
        except StopIteration as end:
            return end.value
        if crash.armed is not None:
            crash.armed(op.label, "before")
        reply = error = None
        try:
            if run.checking:
                only_look(run, call, op)
            waiting = _PERFORM_ASYNC.get(type(op))
            reply = PERFORM[type(op)](run, call, op) if waiting is None else await waiting(run, call, op)
        except BaseException as raised:  # noqa: BLE001 – the protocol hears of it where it yielded
            error = raised
        if crash.armed is not None and error is None:
            crash.armed(op.label, "durable")


# ── operations that wait ────────────────────────────────────────────────────────────────────────────


class _Cancellable:
    """Lets cancellations through to what runs inside; one that came before is raised at once."""

    __slots__ = ("_call",)

    def __init__(self, call: RuntimeCall) -> None:
        self._call = call

    def __enter__(self) -> None:
        if self._call.cancelled:
            raise asyncio.CancelledError
        self._call.in_body = True

    def __exit__(self, *_: object) -> None:
        self._call.in_body = False


async def _append(run: ActiveRun, call: RuntimeCall, op: Append) -> None:
    if op.starts:
        await _gate(run)
        if call.cancelled:
            raise asyncio.CancelledError
    entry = perform.appended(run, op)
    if op.wait:
        try:
            await _settled(entry.ticket)
        except (LeaseLost, StoreUnavailable) as error:
            raise run.broken_by(error) from error
        run.journal.durable(entry)


def _settled(ticket: Ticket) -> asyncio.Future[None]:
    """Return a future of the running loop that ends as the ticket does."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    ticket.add_done_callback(partial(Postbox.put, postbox(loop), future))
    return future


async def _gate(run: ActiveRun) -> None:
    if perform.holds_starts(run):
        await _park(run)
    perform.refuse_start(run)


async def _park(run: ActiveRun) -> None:
    run.park()
    try:
        await run.bell.wait_async(lambda: run.obstacle() is not None)
    finally:
        run.unpark()
    raise run.obstacle() or AssertionError


async def _ask(run: ActiveRun, call: RuntimeCall, op: Ask) -> None:
    if run.first_to_ask(op.once):
        await _append(run, call, perform.asked(op))
    run.asking = True
    if not op.ahead:
        await _park(run)


async def _park_here(run: ActiveRun, call: RuntimeCall, op: Park) -> None:
    run.asking = True
    await _park(run)


async def _wait(run: ActiveRun, call: RuntimeCall, op: Wait) -> None:
    remaining = perform.countdown(run, parse_time(op.until))
    if remaining() <= 0:
        return
    perform.note_waiting(run, op)
    if not run.options.wait:
        await _park(run)
    run.park()
    try:
        with _Cancellable(call):
            while (left := remaining()) > 0 and not perform.interrupted(run):
                await run.bell.wait_async(lambda: perform.interrupted(run), min(left, perform.WAKE_S))
    finally:
        run.unpark()
    await _gate(run)


async def _await_outstanding(run: ActiveRun, call: RuntimeCall, op: Outstanding) -> list[str]:
    run.watched = True
    while left := perform.still_outstanding(call, op):
        with _Cancellable(call):
            if not await run.bell.wait_async(
                lambda: perform.interrupted(run) or perform.still_outstanding(call, op) != left, perform.LULL_S
            ):
                break
        await _gate(run)
    await _gate(run)
    return left


# ── users' functions ────────────────────────────────────────────────────────────────────────────────


def _body(run: ActiveRun, call: RuntimeCall, op: Body) -> Coroutine[Any, Any, Ended | None]:
    if not call.spec.is_async:
        return _run_in_thread(call, partial(bodies.body, run, call, op))
    scope = bodies.scope_of_body(run, call)
    return _run_here(scope, call, call.spec.function, call.args, call.kwargs or {})


async def _send(run: ActiveRun, call: RuntimeCall, op: Send) -> Ended | None:
    if call.cancelled:
        return Ended(error=NotApplied("cancelled before it was sent"))
    if not call.spec.is_async:
        return await _run_in_thread(call, partial(bodies.send, run, call, op))
    if not bodies.may_send(run, op):
        return None
    args, kwargs = bodies.recorded_arguments(call)
    function = crash.function_to_send(call)
    return await _run_here(bodies.scope_of_effect(run, call), call, function, (Key(op.key), *args), kwargs)


async def _run_here(
    scope: Scope, call: RuntimeCall, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Ended:
    """Run an asynchronous body in its scope and wait for the calls it made."""
    began = scope.run.clock.ticks()
    token = current.set(scope)
    entered(scope)
    value: object = None
    error: BaseException | None = None
    try:
        with _Cancellable(call):
            value = await function(*args, **kwargs)
    except BaseException as raised:  # noqa: BLE001 – whatever it is, the protocol decides what it means
        error = raised
    finally:
        current.reset(token)
        left(scope)
    if scope.unbegun() or scope.is_beginning():
        await _tasks_begun(scope)
    if error is None and scope.call is None:
        scope.unheard = scope.unheard or Unheard()  # what was left behind begins now, and may fail
    if scope.unheard is not None:
        await scope.unheard.arrive()
    while not scope.end():
        await scope.run.bell.wait_async(scope.is_quiet)
        if scope.unheard is not None:
            await scope.unheard.arrive()
    return bodies.ended(scope, value, error, began)


async def _tasks_begun(scope: Scope) -> None:
    """Let tasks begin that were created on the body's last line. What no task holds by then is not awaited."""
    waiting = True
    while waiting:
        await asyncio.sleep(0)
        held = not {task.get_coro() for task in asyncio.all_tasks()}.isdisjoint(scope.unbegun().values())
        waiting = held or scope.is_beginning()


async def _run_in_thread(call: RuntimeCall, work: Callable[[], Ended | None]) -> Ended | None:
    """Run a synchronous body in a thread. Cancelled before it began it never runs; later it is given up and runs on."""
    future: Future[Ended | None] | None = None
    try:
        with _Cancellable(call):
            future = _pool.submit(contextvars.copy_context().run, work)
            return await asyncio.shield(asyncio.wrap_future(future))
    except asyncio.CancelledError as cancelled:
        if future is not None and not future.cancel():
            call.given_up = future
        elif isinstance(call.spec, EffectSpec):
            return Ended(error=NotApplied("cancelled before it was sent"))
        return Ended(error=cancelled)


async def _verify(run: ActiveRun, call: RuntimeCall, op: Verify) -> tuple[str, str] | None:
    if not call.spec.is_async:
        return cast("tuple[str, str] | None", await _threaded(run, call, op))
    for verifier in call.spec.verifiers:
        try:
            with _Cancellable(call), bodies.without_calls(run, call, f"verifier {verifier.name}"):
                problem = bodies.refusal(await _awaited(bodies.verdict_of(call, verifier, op.output)))
        except Exception as error:  # noqa: BLE001 – a user's verifier that raises has failed the output
            problem = bodies.raised_in(error)
        if problem is not None:
            return verifier.name, problem
    return None


async def _look_up(run: ActiveRun, call: RuntimeCall, op: LookUp) -> Found[Any] | NotFound | CannotTell:
    if not call.spec.is_async:
        return cast("Found[Any] | NotFound | CannotTell", await _threaded(run, call, op))
    try:
        with _Cancellable(call), bodies.without_calls(run, call, f"the lookup of {call.spec.name}"):
            return bodies.answer_of(call, await _awaited(bodies.answer(call, op.key)))
    except Exception as error:  # noqa: BLE001 – a user's lookup that raises could not ask: cannot tell
        return CannotTell(bodies.raised_in(error))


async def _awaited(said: object) -> object:
    return await said if isinstance(said, Awaitable) else said


async def _within(run: ActiveRun, call: RuntimeCall, op: Within) -> Any:
    return await drive_async(op.steps, run, op.call)


async def _threaded(run: ActiveRun, call: RuntimeCall, op: Op) -> Any:
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(_pool, context.run, PERFORM[type(op)], run, call, op)


_PERFORM_ASYNC: dict[type[Op], Callable[[ActiveRun, Any, Any], Awaitable[Any]]] = {
    Append: _append,
    Ask: _ask,
    Park: _park_here,
    Wait: _wait,
    Outstanding: _await_outstanding,
    Body: _body,
    Send: _send,
    Verify: _verify,
    LookUp: _look_up,
    Within: _within,
    Observe: _threaded,
    KeepFiles: _threaded,
}

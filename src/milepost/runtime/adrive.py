"""The asynchronous driver: the same protocol on an event loop. Only what waits or runs users' code differs.

An async step runs in its own asyncio task behind a shield: a TaskGroup that gives up because a sibling
failed cannot cancel it half-way; any other cancellation cancels its body and nothing else.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from milepost.errors import Signal, StepFailed
from milepost.protocol.keys import Key
from milepost.protocol.ops import (
    Append,
    Ask,
    Body,
    Ended,
    KeepFiles,
    LookUp,
    Observe,
    Op,
    Send,
    Steps,
    Straggler,
    Verify,
    Wait,
    Within,
)
from milepost.protocol.outcomes import CannotTell, Found, NotFound
from milepost.protocol.snapshot import parse_time
from milepost.runtime import crash, perform
from milepost.runtime.active import ActiveRun
from milepost.runtime.drive import protocol_of
from milepost.runtime.perform import PERFORM
from milepost.runtime.scope import RuntimeCall, Scope, current
from milepost.stores.contract import Ticket

_THREADS_MAX = 64
"""Synchronous bodies of one process that may run at once under asynchronous tasks."""
_pool = ThreadPoolExecutor(_THREADS_MAX, thread_name_prefix="milepost-body")


async def drive_call_async(call: RuntimeCall) -> Any:
    """Bring one named call to its end without blocking the loop."""
    scope = call.scope
    scope.enter()
    task = asyncio.ensure_future(drive_async(protocol_of(call), scope.run, call))
    try:
        value = await _shielded(task, call)
        scope.run.finished_here.add(call.path)
        return value
    except Signal as raised:
        scope.signal(raised)
        raise
    except BaseException as raised:
        scope.giving_up = True
        if isinstance(raised, StepFailed):
            scope.failed(call)
        raise
    finally:
        scope.leave()


async def _shielded(task: asyncio.Task[Any], call: RuntimeCall) -> Any:
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if task.done():
            raise
        group_gives_up = call.scope.giving_up or perform.interrupted(call.scope.run)
        if not group_gives_up:
            call.cancelled = True
            if call.in_body:
                task.cancel()
        await _outlive(task)
        raise


async def _outlive(task: asyncio.Task[Any]) -> None:
    """Wait for a step that must not be abandoned, however often its caller is cancelled meanwhile."""
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            continue
    if not task.cancelled():
        task.exception()  # heard: it is recorded, and whoever was cancelled is told of the cancellation


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
            waiting = _PERFORM_ASYNC.get(type(op))
            reply = PERFORM[type(op)](run, call, op) if waiting is None else await waiting(run, call, op)
        except BaseException as raised:  # noqa: BLE001 – the protocol hears of it where it yielded
            error = raised
        if crash.armed is not None and error is None:
            crash.armed(op.label, "durable")


# ── operations that wait ────────────────────────────────────────────────────────────────────────────


async def _append(run: ActiveRun, call: RuntimeCall, op: Append) -> None:
    if op.starts:
        await _gate(run)
    ticket = perform.appended(run, op)
    if op.wait:
        head = run.journal.head
        try:
            await _durable(ticket)
        except BaseException as error:
            raise run.failed(error) from error
        run.journal.durable(head)


async def _durable(ticket: Ticket) -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def told(error: BaseException | None) -> None:
        loop.call_soon_threadsafe(_settle, future, error)

    ticket.add_done_callback(told)
    await future


def _settle(future: asyncio.Future[None], error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)


async def _gate(run: ActiveRun) -> None:
    if run.asking or run.waiting is not None:
        await _park(run)
    obstacle = run.obstacle()
    if obstacle is not None:
        raise obstacle


async def _park(run: ActiveRun) -> None:
    run.park()
    try:
        await run.bell.wait_async(lambda: run.obstacle() is not None)
    finally:
        run.unpark()
    raise run.obstacle() or AssertionError


async def _ask(run: ActiveRun, call: RuntimeCall, op: Ask) -> None:
    await _append(run, call, perform.asked(op))
    run.asking = True
    await _park(run)


async def _wait(run: ActiveRun, call: RuntimeCall, op: Wait) -> None:
    until = parse_time(op.until)
    if run.clock.now() >= until:
        return
    perform.note_waiting(run, op)
    if not run.options.wait:
        await _park(run)
    run.park()
    call.in_body = True
    try:
        while (left := perform.remaining(run, until)) > 0 and not perform.interrupted(run):
            await run.bell.wait_async(lambda: perform.interrupted(run), min(left, perform.WAKE_S))
    finally:
        call.in_body = False
        run.unpark()
    await _gate(run)


# ── users' functions ────────────────────────────────────────────────────────────────────────────────


async def _body(run: ActiveRun, call: RuntimeCall, op: Body) -> Ended:
    state = run.snapshot.steps.get(call.path)
    return await _run(run, call, state.attempt if state else 1, (), call.args, call.kwargs or {})


async def _send(run: ActiveRun, call: RuntimeCall, op: Send) -> Ended:
    args, kwargs = perform.recorded_arguments(call)
    return await _run(run, call, 0, (Key(op.key),), args, kwargs)


async def _run(
    run: ActiveRun, call: RuntimeCall, attempt: int, key: tuple[Key, ...], args: tuple[Any, ...], kwargs: Any
) -> Ended:
    if call.cancelled:
        return Ended(error=asyncio.CancelledError())
    if call.spec.is_async:
        scope = Scope(run, call.path, call if call.scope is not None else None, attempt)
        return await _run_in(scope, call, lambda: call.spec.function(*key, *args, **kwargs))
    return await _in_thread(run, call, attempt, lambda: call.spec.function(*key, *args, **kwargs))


async def _run_in(scope: Scope, call: RuntimeCall, function: Callable[[], Awaitable[object]]) -> Ended:
    """Run an asynchronous body in its scope and wait for the steps it started."""
    began = scope.run.clock.ticks()
    token = current.set(scope)
    value: object = None
    error: BaseException | None = None
    call.in_body = True
    try:
        value = await function()
    except BaseException as raised:  # noqa: BLE001 – whatever it is, the protocol decides what it means
        error = raised
    finally:
        call.in_body = False
        current.reset(token)
    if scope.active:
        scope.run.watched = True
        await scope.run.bell.wait_async(lambda: scope.active == 0)
    return perform.ended(scope, value, error, began)


async def _in_thread(run: ActiveRun, call: RuntimeCall, attempt: int, function: Callable[[], object]) -> Ended:
    """Run a synchronous body in a thread. Cancelled, it is given up but still runs: remembered as a straggler."""

    def work() -> Ended:
        return perform.run_in(Scope(run, call.path, call if call.scope is not None else None, attempt), function)

    context = contextvars.copy_context()
    future: Future[Ended] = _pool.submit(context.run, work)
    call.in_body = True
    try:
        return await asyncio.wrap_future(_uncancellable(future))
    except asyncio.CancelledError as cancelled:
        state = run.snapshot.effects.get(call.path)
        run.straggle(call.path, state.last.intent.attempt if state and state.last else attempt, future)
        return Ended(error=cancelled)
    finally:
        call.in_body = False


def _uncancellable(future: Future[Ended]) -> Future[Ended]:
    """Return a future that follows another one, so that cancelling it leaves the other alone."""
    follower: Future[Ended] = Future()

    def follow(done: Future[Ended]) -> None:
        if follower.set_running_or_notify_cancel():
            follower.set_result(done.result())

    future.add_done_callback(follow)
    return follower


async def _verify(run: ActiveRun, call: RuntimeCall, op: Verify) -> tuple[str, str] | None:
    for verifier in call.spec.verifiers:
        try:
            verdict = verifier.call(op.output, **{name: call.bound[name] for name in verifier.inputs})
            if isinstance(verdict, Awaitable):
                verdict = await verdict
        except Exception as error:  # noqa: BLE001 – a user's verifier that raises has failed the output
            return verifier.name, perform.raised_in(error)
        problem = perform.refusal(verdict)
        if problem is not None:
            return verifier.name, problem
    return None


async def _look_up(run: ActiveRun, call: RuntimeCall, op: LookUp) -> Found[Any] | NotFound | CannotTell:
    try:
        args, kwargs = perform.recorded_arguments(call)
        answer = call.spec.lookup(Key(op.key), *args, **kwargs)
        return perform.answer_of(await answer if isinstance(answer, Awaitable) else answer)
    except Exception as error:  # noqa: BLE001 – a user's lookup that raises could not ask: cannot tell
        return CannotTell(perform.raised_in(error))


async def _within(run: ActiveRun, call: RuntimeCall, op: Within) -> Any:
    return await drive_async(op.steps, run, op.call)


async def _threaded(run: ActiveRun, call: RuntimeCall, op: Observe | KeepFiles | Straggler) -> Any:
    return await asyncio.get_running_loop().run_in_executor(_pool, PERFORM[type(op)], run, call, op)


_PERFORM_ASYNC: dict[type[Op], Callable[[ActiveRun, Any, Any], Awaitable[Any]]] = {
    Append: _append,
    Ask: _ask,
    Wait: _wait,
    Body: _body,
    Send: _send,
    Verify: _verify,
    LookUp: _look_up,
    Within: _within,
    Observe: _threaded,
    KeepFiles: _threaded,
    Straggler: _threaded,
}

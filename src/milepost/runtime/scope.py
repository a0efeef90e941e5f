"""Who am I? The scope: one execution of one body. Its names, its home task or thread, its chain, its signal.

The only context variable of Milepost. A call of a step or effect is named here, on the line of the body
that calls it; which record it belongs to follows from the name and nothing else.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextvars import ContextVar, copy_context
from dataclasses import replace
from inspect import CORO_CLOSED, CORO_CREATED, getcoroutinestate
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from milepost.errors import (
    BadName,
    CalledInside,
    Declined,
    DuplicateStep,
    MilepostError,
    MisuseError,
    NotAwaited,
    OutsideRun,
    RunStopping,
    Signal,
    StepFailed,
    UndeclaredWrite,
)
from milepost.protocol.call import Call
from milepost.protocol.keys import checked_item_key
from milepost.protocol.ops import Ended
from milepost.protocol.questions import listed
from milepost.protocol.spec import EffectSpec, StepSpec
from milepost.records.canonical import digest
from milepost.records.fingerprint import fingerprint
from milepost.records.frozen import slotted
from milepost.records.model import Outcome, OutcomeRecorded, Record, StepFailedNoted
from milepost.records.paths import find_paths
from milepost.runtime.expected import Expected
from milepost.runtime.inside import called_in
from milepost.runtime.loops import current_task, running_loop
from milepost.runtime.unheard import Home, Unheard, is_all_of_a_thread

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

    from milepost.runtime.active import ActiveRun

AnySpec: TypeAlias = StepSpec | EffectSpec
P = ParamSpec("P")
R = TypeVar("R")
WHAT_KEYS_GIVE = "Let the function given as key= return a str or an int, from the call's arguments."

IN_DOUBT_HINT = "`milepost resume RUN` finds out what became of it. To try again within a run, give the effect a Retry."
RETRIED_IN_DOUBT_HINT = (
    "`milepost resume RUN` finds out what became of it. Its Retry tries again what its `on` names, and no call that "
    "was cancelled: for a deadline, set the timeout of the client inside the effect."
)

SENDING = "effect"
"""What begins `inside` of a scope in which an effect's function runs."""

current: ContextVar[Scope | None] = ContextVar("milepost_scope", default=None)


def here() -> Home:
    """Return the running asyncio task, else this thread's id."""
    return current_task() or threading.get_ident()


def on_a_loop() -> bool:
    """Say whether an event loop runs in this thread."""
    return running_loop() is not None


@slotted
class RuntimeCall(Call[Any]):
    """A call with what carrying it out takes: its scope, its arguments as given, its body's state."""

    scope: Scope = None  # type: ignore[assignment]  # always given; a dataclass wants a default after defaults
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] | None = None
    in_body: bool = False  # a cancellation is passed on to what runs now
    cancelled: bool = False
    under_way: bool = False  # its scope counts it
    given_up: Future[Ended | None] | None = None  # the thread of a body that was cancelled and still runs
    named_by: asyncio.Task[Any] | None = None  # the asyncio task that made the call


class Scope:
    """One execution of one body. `path` is '' for the task's own."""

    __slots__ = (
        "_counts",
        "_to_come",
        "active",
        "attempt",
        "call",
        "expected",
        "has_ended",
        "home",
        "inside",
        "misused",
        "path",
        "pid",
        "run",
        "signalled",
        "spent",
        "undeclared",
        "unheard",
        "unsettled",
    )

    def __init__(
        self, run: ActiveRun, path: str, call: RuntimeCall | None, attempt: int = 0, *, inside: str = ""
    ) -> None:
        self.run, self.path, self.call, self.attempt = run, path, call, attempt
        self.inside = inside  # what holds no calls: an effect, a verifier, a lookup
        self.home: Home = here()
        self.pid = os.getpid()
        self.signalled: Signal | None = None
        self.misused: MisuseError | None = None  # said wrongly in an effect: told when its outcome is recorded
        self.undeclared: UndeclaredWrite | None = None  # what a shadow run kept this body, or one inside, from doing
        self.has_ended = False
        self.active = 0  # calls of this body under way
        self._to_come: dict[str, Coroutine[Any, Any, Any]] = {}  # named, and to begin when they are awaited
        self.spent: dict[str, Any] = {}
        self.unsettled: dict[str, tuple[Record, bool]] = {}  # failures the plan was told of and may have caught
        self.unheard: Unheard | None = None  # failures away from the body's own line: somebody took them, or nobody
        self._counts: dict[str, int] = {}
        around = call.scope.expected if call is not None else None
        self.expected: Expected = Expected(run.snapshot, {} if inside else run.stands_in(path), call, around)

    @property
    def sends(self) -> bool:
        """Say whether this is an effect's function: what it does may have arrived outside at any moment."""
        return self.inside.startswith(SENDING)

    # ── naming ──────────────────────────────────────────────────────────────────────────────────────

    def begin(self, spec: AnySpec, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> RuntimeCall:
        """Name a call. Raises: DuplicateStep, BadName, NotEncodable, CalledInside, OutsideRun in a forked child."""
        try:
            self._check_open(spec)
            bound = spec.arguments.bind(args, kwargs)
            encoded = spec.arguments.encode(bound)
            run, task = self.run, current_task()
            branch = (task or threading.get_ident()) != self.home
            if self.unsettled and not branch:
                self.note_caught(own_line_only=True)
            item_key = self._item_key(spec, args, kwargs) if spec.key is not None else None
            with run.lock:
                path = self._name(spec, item_key, branch, encoded)
                stood = self.expected.left.pop(path, None) is not None
            if stood and run.watched:
                run.bell.ring()
            return RuntimeCall(
                spec=spec,
                path=path,
                branch=branch,
                bound=bound,
                encoded=encoded,
                fingerprint=fingerprint(encoded, run.seal_key),
                item_key=item_key,
                run=run,
                snapshot=run.snapshot,
                paths=self._sources(spec, bound) if spec.arguments.holds_paths else (),
                looked_up=run.looked_up.pop(path, None) if run.looked_up else None,
                elsewhere=run.elsewhere(spec, item_key, path) if isinstance(spec, EffectSpec) else (),
                scope=self,
                args=args,
                kwargs=kwargs,
                named_by=task,
                stood=stood,
            )
        except MilepostError as error:
            self._raised_elsewhere(error)
            raise

    def _raised_elsewhere(self, error: MilepostError) -> None:
        """Remember an error that is raised away from the body's own line: somebody takes it, or the body fails."""
        scope = self
        while scope.has_ended and scope.call is not None:
            scope = scope.call.scope  # refused because of that: the body around it can still say so
        if here() != scope.home:
            scope.unheard = scope.unheard or Unheard()
            scope.unheard.failed(error, scope.home)

    def _check_open(self, spec: AnySpec) -> None:
        """Refuse a call that no body can answer for."""
        self.check_process(spec.name)
        if self.inside:
            raise CalledInside(path=spec.name, inside=self.inside)
        if isinstance(spec, EffectSpec) and (inner := called_in(spec.function)) is not None:
            raise CalledInside(path=inner, inside=f"effect {spec.name}")
        if self.has_ended:
            raise OutsideRun(path=spec.name, reason="the body that called it has ended")
        scope: Scope | None = self
        while scope is not None and scope.call is not None:
            if scope.call.given_up is not None:
                raise RunStopping(f"{scope.path} was cancelled")
            scope = scope.call.scope

    def check_process(self, name: str) -> None:
        """Refuse a forked child. Raises: OutsideRun."""
        if self.pid != os.getpid():
            raise OutsideRun(path=name, reason="this process was forked from the one that holds the run")

    def _item_key(self, spec: AnySpec, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        assert spec.key is not None
        value = spec.key(*args, **kwargs)
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise BadName(
                what=f"key= of {spec.name}",
                name=repr(value)[:80],
                reason="expected a str or an int",
                hint=WHAT_KEYS_GIVE,
            )
        return checked_item_key(f"key= of {spec.name}", str(value))

    def _name(self, spec: AnySpec, item_key: str | None, branch: bool, encoded: bytes) -> str:
        name = spec.name
        if item_key is not None:
            name = f"{name}[{item_key}]"
        elif branch:
            name = f"{name}[~{digest(encoded)[:12]}]"
        counted = spec.name if isinstance(spec, EffectSpec) and item_key is None else name
        number = self._counts.get(counted, 0) + 1
        path = f"{self.path}/{name}" if self.path else name
        if number > 1 and (item_key is not None or isinstance(spec, EffectSpec)):
            raise self._duplicate(spec, path, item_key)
        self._counts[counted] = number
        return path if number == 1 else f"{path}#{number}"

    def _duplicate(self, spec: AnySpec, path: str, item_key: str | None) -> DuplicateStep:
        """Return the error of a second call. A key of its own would send what is in doubt a second time."""
        what = f"the key {item_key!r} is taken" if item_key is not None else "an effect without key= is called once"
        state = self.run.snapshot.effects.get(path)
        if state is None or not any(send.outcome is not None for send in state.open_sends):
            return DuplicateStep(run_id=self.run.run_id, path=path, reason=f"in one body {what}")
        reason = "its first call is in doubt, it was sent and nobody knows whether it arrived"
        hint = IN_DOUBT_HINT if spec.retry is None else RETRIED_IN_DOUBT_HINT
        return DuplicateStep(run_id=self.run.run_id, path=path, reason=reason, hint=hint)

    def _sources(self, spec: AnySpec, bound: Mapping[str, Any]) -> list[dict[str, Any]]:
        written = spec.writes if isinstance(spec, StepSpec) else ()
        watched = [bound[name] for name in spec.arguments.watched if name in bound and name not in written]
        return [{"kind": "path", "path": str(path)} for value in watched for _, path in find_paths(value)]

    def failed(self, call: RuntimeCall, error: MilepostError) -> None:
        """Remember that the plan was told of a failure: when it goes on, it has caught it."""
        self._raised_elsewhere(error)
        if not isinstance(error, (StepFailed, Declined)):
            return
        s = self.run.snapshot
        step, effect = s.steps.get(call.path), s.effects.get(call.path)
        last = effect.last.outcome if effect is not None and effect.last is not None else None
        noted: StepFailedNoted | OutcomeRecorded | None = step.failure if step is not None else last
        if noted is None or noted.final or getattr(noted, "outcome", Outcome.REJECTED) != Outcome.REJECTED:
            return
        self.unsettled[call.path] = (replace(noted, final=True), here() != self.home)

    def hear_of(self, calls: Iterable[RuntimeCall]) -> None:
        """Note that failures of calls carried out elsewhere have reached whoever is here."""
        for call in calls:
            if call.path in self.unsettled and here() == self.home:
                self.unsettled[call.path] = (self.unsettled[call.path][0], False)

    def note_caught(self, *, own_line_only: bool = False) -> None:
        """Make failures final that the plan has caught and gone on from: the same on each resume.

        A failure told to another task or thread may not have reached the body's own line yet: it counts at its end.
        Crash: the step starts again, and nothing after it has started.
        """
        if not self.unsettled:
            return
        caught = [path for path, (_, branch) in self.unsettled.items() if not (own_line_only and branch)]
        if caught:
            self.run.append([self.unsettled.pop(path)[0] for path in caught])

    # ── being under way ─────────────────────────────────────────────────────────────────────────────

    def enter(self, call: RuntimeCall) -> None:
        """Count a call as under way; the body that made it is quiet meanwhile. Raises: OutsideRun when it has ended."""
        with self.run.lock:
            if self.has_ended:
                raise OutsideRun(path=call.path, reason="the body that called it has ended")
            if self.active > 0:
                self.run.busy += 1
            self.active, call.under_way = self.active + 1, True
            if self._to_come:
                self.begun(call.path)
            if self.expected.left:
                call.unclaimed = self.expected.unclaimed(call)
            if isinstance(call.spec, EffectSpec) and call.path not in self.run.snapshot.effects:
                call.outstanding = bool(self.expected.near())

    def leave(self, call: RuntimeCall) -> None:
        """Count a call that is under way as over; wake whoever waits for the body to be quiet."""
        with self.run.lock:
            if not call.under_way:
                return
            self.active, call.under_way = self.active - 1, False
            if self.active > 0:
                self.run.busy -= 1
        if self.run.watched:
            self.run.changed()

    def to_come(self, path: str, work: Coroutine[Any, Any, R]) -> Coroutine[Any, Any, R]:
        """Remember a call that begins when it is awaited; `work` bears its name for whoever forgets it."""
        work.__qualname__ = path  # type: ignore[attr-defined]  # typeshed leaves it out
        self._to_come[path] = work
        return work

    def begun(self, path: str) -> None:
        self._to_come.pop(path, None)

    def unbegun(self) -> dict[str, Coroutine[Any, Any, Any]]:
        """Return calls that were named and did not begin; one whose task was cancelled before is none of them."""
        if not self._to_come:
            return {}
        return {path: work for path, work in list(self._to_come.items()) if getcoroutinestate(work) == CORO_CREATED}

    def is_beginning(self) -> bool:
        """Say whether a call was taken up by a task and is not under way yet."""
        states = [getcoroutinestate(work) for work in list(self._to_come.values())]
        return any(state not in (CORO_CREATED, CORO_CLOSED) for state in states)

    def forgotten(self) -> NotAwaited | None:
        """Close what the body called and did not await, and return the error that says so."""
        if not self._to_come:
            return None
        unbegun = self.unbegun()
        for work in unbegun.values():
            work.close()
        return NotAwaited(run_id=self.run.run_id, path=listed(list(unbegun))) if unbegun else None

    def end(self) -> bool:
        """End the body, after which nothing is called from it; False while calls are under way."""
        with self.run.lock:
            self.has_ended = self.active == 0
        self.run.watched = self.run.watched or not self.has_ended
        return self.has_ended

    def is_quiet(self) -> bool:
        """Say whether no call of this body is under way."""
        return self.active == 0

    def signal(self, raised: Signal) -> None:
        """Mark this body and all around it: none of them is verified, whatever they swallow (sticky)."""
        scope: Scope | None = self
        while scope is not None:
            if scope.signalled is None:
                scope.signalled = raised
            scope = scope.call.scope if scope.call is not None else None

    def blocked(self, error: UndeclaredWrite) -> None:
        """Mark this body and all around it: none of them comes through, whatever they swallow (sticky)."""
        scope: Scope | None = self
        while scope is not None:
            scope.undeclared = scope.undeclared or error
            scope = scope.call.scope if scope.call is not None else None


def carry(function: Callable[P, R]) -> Callable[P, R]:
    """Carry the current run into a thread of your own pool: `pool.submit(milepost.carry(extract), x)`."""
    context = copy_context()

    def carried(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return context.copy().run(function, *args, **kwargs)
        except BaseException as error:  # whatever it is, it is raised again; where nobody would hear it, the body does
            if isinstance(error, Signal) and is_all_of_a_thread(sys._getframe(1)):
                return None  # type: ignore[return-value]  # the run is told already; here it would only be printed
            scope = context.get(current)
            if scope is not None and scope.unheard is not None:
                scope.unheard.leaves(error)
            raise

    return carried

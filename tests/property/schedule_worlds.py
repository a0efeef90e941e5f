"""Random plans, a provider in memory and a process that can die at any point: what the schedule properties are about.

Death is a `Died` raised by an armed crash point: what was durable at that moment is all that is left, and neither
the store nor the provider hears anything of the dead process afterwards.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from clock import START, MovableClock

from milepost import CannotTell, Found, Key, NotApplied, NotFound, Retry, effect, step, task
from milepost.errors import QuestionError
from milepost.records.canonical import canonical
from milepost.records.model import Pointer, Record, StepVerified
from milepost.records.rows import AnswerRow
from milepost.records.times import format_time
from milepost.runtime import crash
from milepost.runtime.opening import Opened, check_inner_heads, read_snapshot
from milepost.runtime.scope import current
from milepost.stores.memory import MemoryStore

RUN_ID = "r"
NOWHERE = {"XDG_STATE_HOME": "/dev/null/nowhere"}
"""No witness: the dead process, which unwinds where a real one is gone, would go on writing it."""
ATTEMPTS = 3
MEMORY = timedelta(minutes=10)
LATE = timedelta(seconds=30)
STARTS_MAX = 60
CHARACTERS = ("honours-keys", "looked-up", "neither", "never-answers", "forgets-keys", "looks-up-late")
APPROVED = "approved"
"""A provider that can be looked up, to which nothing is sent before two people approved."""


class Died(BaseException):
    """The process is dead."""


class Flaky(Exception):
    """Fails for a while."""


@dataclass(frozen=True)
class Node:
    """One call of a plan: its kind, its name, for `outer` and `posts` what it consists of, for `flaky` its failures."""

    kind: str  # plain, checked, flaky, outer, post, posts
    name: str
    inner: tuple[Node, ...] = ()
    times: int = 0  # failures before it succeeds; how busy the provider is; how many posts at once

    def paths(self, prefix: str = "") -> list[str]:
        """Return what is finished when this call is."""
        if self.kind == "posts":
            return [path for node in self.inner for path in node.paths(prefix)]
        return [f"{prefix}{self.kind}[{self.name}]"]


def waits(plan: Sequence[Node], prefix: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each path of a plan with the paths that must be finished, durably, before it begins."""
    before: list[str] = []
    for node in plan:
        paths = node.paths(prefix)
        for path in paths:
            yield path, list(before)
            if node.kind == "outer":
                yield from waits(node.inner, f"{path}/")
        before += paths


class Provider:
    """Outlives every death; `applied` counts per key."""

    def __init__(self, character: str, clock: MovableClock) -> None:
        self.character, self._clock = character, clock
        self.applied: Counter[str] = Counter()
        self.names: dict[str, str] = {}
        self._at: dict[str, datetime] = {}
        self._refused: Counter[str] = Counter()
        self._lock = threading.Lock()

    def post(self, key: str, name: str, busy: int) -> dict[str, str]:
        with self._lock:
            first = key not in self._at
            if first and self._refused[key] < busy:
                self._refused[key] += 1
                raise NotApplied("busy")
            if first or not self._remembers(key):
                self.applied[key] += 1
                self._at[key], self.names[key] = self._clock.now(), name
        if first and self.character == "never-answers":
            raise ConnectionError("no answer")
        return {"done": name}

    def _remembers(self, key: str) -> bool:
        if self.character == "forgets-keys":
            return self._clock.now() - self._at[key] < MEMORY
        return self.character == "honours-keys"

    def find(self, key: Key, name: str) -> Found[dict[str, str]] | NotFound | CannotTell:
        late = LATE if self.character == "looks-up-late" else timedelta(0)
        at = self._at.get(str(key))
        return NotFound() if at is None or at + late > self._clock.now() else Found({"done": name}, ref=None)

    def dealings(self) -> dict[str, Any]:
        """Return how an effect is declared for this provider."""
        retry = Retry(on=(NotApplied, ConnectionError), attempts=ATTEMPTS)
        options: dict[str, dict[str, Any]] = {
            "honours-keys": {"key_lifetime": timedelta(days=1)},
            "looked-up": {"lookup": self.find, "settle": timedelta(0)},
            "never-answers": {"lookup": self.find, "settle": timedelta(0)},
            APPROVED: {"lookup": self.find, "settle": timedelta(0), "approve": "before", "approvals": 2},
            "looks-up-late": {"lookup": self.find, "settle": LATE},
            "forgets-keys": {"key_lifetime": MEMORY},
        }
        return {"retry": retry, "provider": "memory", **options.get(self.character, {})}


@dataclass
class World:
    """What outlives the processes of one run: the store as it was durable, the clock, the provider, the traces."""

    plan: Sequence[Node]
    character: str
    clock: MovableClock = field(default_factory=MovableClock)
    store: MemoryStore = field(default_factory=MemoryStore)
    failures: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.provider = Provider(self.character, self.clock)
        self.inner = {node.name: node.inner for node in self.plan}
        self.waits_for = dict(waits(self.plan, ""))

    # ── a process ──

    def start(self, die_at: int | None) -> bool:
        """Start or resume in a process that dies at its n-th point; True when the run is done."""
        process = Process(self, die_at)
        crash.armed = process.reached
        try:
            process.run()
        except Died:
            assert process.left is not None
            self.store = process.left
            return False
        except QuestionError as question:
            self.asked[question.code] += 1
            self.answer()
            return False
        finally:
            crash.armed = None
        return True

    def finish(self) -> None:
        for _ in range(STARTS_MAX):
            if self.start(None):
                return
        raise AssertionError(f"not done after {STARTS_MAX} starts: {self.asked}")

    def answer(self) -> None:
        """Answer as a person would who looks at the provider."""
        for question in self.store.questions(RUN_ID):
            choice, result = "again", None
            if question.kind == "approval":
                self.approve(question.question_id)
                continue
            if question.kind == "outcome_unknown":
                key = next((k for k in self.provider.applied if k in question.sentence), None)
                choice = "applied" if key else "not-applied"
                result = canonical({"done": self.provider.names[key]}) if key else None
            self.store.answer(AnswerRow(question.question_id, RUN_ID, choice, "ada", format_time(START), result=result))

    def approve(self, question_id: str) -> None:
        """Let two people approve, unless they have."""
        for place, who in enumerate(("ada", "bob"), 1):
            self.store.answer(AnswerRow(question_id, RUN_ID, "approve", who, format_time(START), place=place))

    # ── what stands ──

    def opened(self, store: MemoryStore | None = None) -> Opened:
        opened = read_snapshot(store or self.store, RUN_ID, None, every_chain=True)
        if opened.refusal is not None:
            raise opened.refusal
        check_inner_heads(opened)
        return opened

    def records(self) -> list[Record]:
        return [] if self.store.run(RUN_ID) is None else [record for _, record in self.opened().records]

    def digests(self) -> dict[str, str]:
        """Return the digest of each output and result that counts, and of the run's."""
        s = self.opened().snapshot
        steps = {path: x.verified.output.digest for path, x in s.steps.items() if x.verified}
        effects = {path: x.applied.result.digest for path, x in s.effects.items() if x.applied and x.applied.result}
        assert s.ended is not None
        assert s.ended.output is not None
        return {**steps, **effects, "": s.ended.output.digest}

    def missing_artifacts(self) -> list[str]:
        """Return records that point at an artifact which is not there."""
        pointers = {
            pointer.digest: f"{record.kind} {getattr(record, 'path', '')}"
            for record in self.records()
            for pointer in (getattr(record, name, None) for name in ("output", "result", "request", "inputs", "files"))
            if isinstance(pointer, Pointer)
        }
        there = self.store.artifacts(RUN_ID, list(pointers)) if pointers else {}
        return [who for name, who in pointers.items() if name not in there or there[name].digest != name]

    def verified(self) -> list[str]:
        return [record.path for record in self.records() if isinstance(record, StepVerified)]


class Process:
    """One process on a world: runs the plan until it is done, asks, or dies."""

    def __init__(self, world: World, die_at: int | None, at_point: Callable[[str], None] | None = None) -> None:
        self.world, self._die_at, self._at_point = world, die_at, at_point
        self._store = world.store
        self._passed = 0
        self._lock = threading.Lock()
        self.left: MemoryStore | None = None

    def reached(self, label: str, phase: str) -> None:
        with self._lock:
            self._passed += 1
            if self.left is None and self._passed == self._die_at:
                self.left = self._store.crash()
        self._alive()
        if self._at_point is not None:
            self._at_point(f"{label} {phase}")

    def _alive(self) -> None:
        if self.left is not None:
            raise Died

    def run(self, **options: Any) -> Any:
        given = {"store": self._store, "clock": self.world.clock, "environ": NOWHERE, "handle_signals": False}
        return self._task().options(**given, **options).run(RUN_ID, 1)

    def _task(self) -> Any:
        """Declare the plan: a call is named by its kind and name, and gets what the one before it returned."""
        world = self.world

        def name_of(name: str, given: int) -> str:
            return name

        @step(key=name_of)
        def plain(name: str, given: int) -> int:
            self._began()
            return given + 1

        @step(key=name_of, verify=lambda output: output > 0)
        def checked(name: str, given: int) -> int:
            self._began()
            return given * 3

        @step(key=name_of, retry=Retry(on=Flaky, attempts=ATTEMPTS))
        def flaky(name: str, given: int) -> int:
            self._began()
            if world.failures[name] < int(name.rpartition("-")[2]):
                world.failures[name] += 1
                raise Flaky(name)
            return given + 7

        @step(key=name_of)
        def outer(name: str, given: int) -> int:
            self._began()
            return self._follow(world.inner[name], given, calls)

        @effect(key=lambda name: name, **world.provider.dealings())
        def post(key: Key, name: str) -> dict[str, str]:
            self._began()
            return world.provider.post(str(key), name, int(name.rpartition("-")[2]))

        calls = {"plain": plain, "checked": checked, "flaky": flaky, "outer": outer, "post": post}

        @task(name="random")
        def plan(given: int) -> int:
            return self._follow(world.plan, given, calls)

        return plan

    def _follow(self, nodes: Sequence[Node], given: int, calls: dict[str, Any]) -> int:
        """Call what a body consists of, in order, each with what the one before returned."""
        for node in nodes:
            if node.kind == "posts":
                sent = calls["post"].map([inner.name for inner in node.inner], concurrency=node.times)
                given += sum(len(receipt["done"]) for receipt in sent)
            elif node.kind == "post":
                given += len(calls["post"](node.name)["done"])
            else:
                given = calls[node.kind](node.name, given)
        return given

    def _began(self) -> None:
        """Note a violation unless all that this body or send waits for is durable, its own start or intent too."""
        self._alive()
        scope = current.get()
        assert scope is not None
        durable = self.world.opened(self._store.crash()).snapshot
        for path in self.world.waits_for[scope.path]:
            step, effect = durable.steps.get(path), durable.effects.get(path)
            if not (step is not None and step.verified) and not (effect is not None and effect.applied):
                self.world.violations.append(f"{scope.path} began before {path} was finished")
        own = durable.steps.get(scope.path), durable.effects.get(scope.path)
        if own[0] is None and not (own[1] is not None and own[1].open_sends):
            self.world.violations.append(f"{scope.path} began without a durable start or intent")
        given = durable.approvals[scope.path].given if scope.path in durable.approvals else []
        if own[1] is not None and self.world.character == APPROVED and [a.by for a in given] != ["ada", "bob"]:
            self.world.violations.append(f"{scope.path} began without a durable approval of two")

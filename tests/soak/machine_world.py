"""What the state machine acts on: a plan that can be edited, its store, sources, clock, provider, and who answers.

A process dies by what was durable at that moment being all that is left (as in `property/schedule_worlds`). The
witness is real: a store that goes back in time is noticed. Asserts nothing; `machine` does.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from clock import MovableClock
from schedule_worlds import ATTEMPTS, Died, Flaky, Provider

from milepost import Key, Retry, effect, step, task
from milepost.errors import MilepostError
from milepost.protocol.snapshot import Snapshot
from milepost.records.canonical import canonical, parse
from milepost.records.identity import Identity
from milepost.records.model import Record
from milepost.records.times import format_time
from milepost.runtime import children, crash
from milepost.runtime.active import RunOptions
from milepost.runtime.answering import answer_question, asked
from milepost.runtime.opening import read_snapshot
from milepost.stores.contract import QuestionRow
from milepost.stores.memory import MemoryStore

children.plays_both = True  # this process works on the runs and answers what they ask
FIRST = "r"
GIVEN = 1
KINDS = ("plain", "checked", "reads", "flaky", "post", "outer")


@dataclass(frozen=True)
class Node:
    """One call of a plan; `times` is how often it fails, or the provider is busy, at first."""

    kind: str
    name: str
    times: int = 0
    inner: tuple[Node, ...] = ()

    @property
    def path(self) -> str:
        return f"{self.kind}[{self.name}]"


def paths(nodes: Sequence[Node], prefix: str = "") -> Iterator[str]:
    """Yield the path of every call of a plan in order."""
    for node in nodes:
        yield prefix + node.path
        yield from paths(node.inner, f"{prefix}{node.path}/")


class TwoClocks(MovableClock):
    """The run's clock, which a person may set back, and the provider's, which only goes forward."""

    def __init__(self) -> None:
        super().__init__()
        self.provider = MovableClock()

    def move(self, by: timedelta) -> None:
        super().move(by)
        if by > timedelta(0):
            self.provider.move(by)


@dataclass
class Lived:
    """Everything that outlives a process."""

    folder: Path
    character: str
    seal_key: bytes | None
    asks_about_versions: bool
    nodes: list[Node]
    clock: TwoClocks = field(default_factory=TwoClocks)
    store: MemoryStore = field(default_factory=MemoryStore)
    run_ids: list[str] = field(default_factory=lambda: [FIRST])
    version: int = 1
    went_back: bool = False  # an older copy of the store took its place
    failures: Counter[str] = field(default_factory=Counter)
    sends: Counter[str] = field(default_factory=Counter)  # calls of the provider, accepted or not
    allowed: Counter[str] = field(default_factory=Counter)  # how often a person said that an effect may go out anew

    def __post_init__(self) -> None:
        self.provider = Provider(self.character, self.clock.provider)
        self.state = self.folder / "state"
        self.state.mkdir()

    # ── processes ──

    @property
    def run_id(self) -> str:
        """Return the newest run of the family that the store knows."""
        known = [run_id for run_id in self.run_ids if self.store.run(run_id) is not None]
        return known[-1] if known else FIRST

    def start(self, die_at: int | None) -> MilepostError | None:
        """Start or resume in a process that dies at its n-th point; return why it ended, None when done or dead."""
        process = Process(self, die_at)
        crash.armed = process.reached
        try:
            process.run()
        except Died:
            pass
        except MilepostError as error:
            return error
        finally:
            crash.armed = None
            process.bury()
        return None

    def options(self) -> dict[str, Any]:
        environ = {"XDG_STATE_HOME": str(self.state)}
        return {
            "store": self.store,
            "clock": self.clock,
            "environ": environ,
            "seal_key": self.seal_key,
            "handle_signals": False,
        }

    def run_options(self) -> RunOptions:
        return RunOptions(**self.options())

    # ── people ──

    def questions(self) -> list[QuestionRow]:
        return self.store.questions(self.run_id)

    def choices(self, question: QuestionRow) -> list[str]:
        """Return the choices that are no lie: what became of a send is answered by looking at the provider."""
        names = [choice.name for choice in asked(question).choices]
        if question.kind == "outcome_unknown":
            return ["applied" if self._key_in(question) else "not-applied"]
        return names

    def answer(self, question: QuestionRow, choice: str) -> None:
        """Answer, and remember when that lets an effect go out under another key."""
        if choice == "send" or (question.kind, choice) == ("plan_changed", "accept"):
            self.allowed[question.path] += 1
        key = self._key_in(question) if choice == "applied" else None
        result = canonical({"done": self.provider.names[key]}).decode() if key else None
        at = format_time(self.clock.now())
        answer_question(
            self.store, question.question_id, choice, seal_key=self.seal_key, by=Identity("ada"), at=at, result=result
        )

    def _key_in(self, question: QuestionRow) -> str | None:
        return next((key for key in self.provider.applied if key in question.sentence), None)

    # ── the world ──

    def source(self, name: str) -> Path:
        path = self.folder / f"{name}.txt"
        if not path.exists():
            path.write_text("1", encoding="utf-8")
        return path

    def snapshot(self) -> Snapshot:
        """Return what the journal of the run says. Raises: what it is refused for."""
        opened = read_snapshot(self.store, self.run_id, self.seal_key, every_chain=True)
        if opened.refusal is not None:
            raise opened.refusal
        return opened.snapshot

    def records(self) -> list[Record]:
        if self.store.run(self.run_id) is None:
            return []
        opened = read_snapshot(self.store, self.run_id, self.seal_key, every_chain=True)
        if opened.refusal is not None:
            raise opened.refusal
        return [record for _, record in opened.records]

    def output(self, digest: str) -> Any:
        return parse(self.store.artifacts(self.run_id, [digest])[digest].data or b"null")


class Process:
    """One process: declares the plan as it is now, and runs it until it is done, asks, fails or dies."""

    def __init__(self, world: Lived, die_at: int | None) -> None:
        self.world, self._die_at = world, die_at
        self._store = world.store
        self._passed = 0
        self.left: MemoryStore | None = None
        self._witnesses = world.folder / "witnesses-at-death"

    def reached(self, label: str, phase: str) -> None:
        self._passed += 1
        if self.left is None and self._passed == self._die_at:
            self.left = self._store.crash()
            shutil.copytree(self.world.state, self._witnesses)
        self.alive()

    def alive(self) -> None:
        if self.left is not None:
            raise Died

    def bury(self) -> None:
        """Let nothing of what a dead process did after its death stand."""
        if self.left is not None:
            self.world.store = self.left
            shutil.rmtree(self.world.state)
            self._witnesses.rename(self.world.state)

    def run(self) -> Any:
        plan, run_id = self.task().options(**self.world.options()), self.world.run_id
        return plan.run(run_id, GIVEN) if run_id == FIRST else plan.resume(run_id)

    def task(self) -> Any:
        """Declare the plan: a call is named by its kind and name, and gets what the one before it returned."""
        world = self.world
        version = str(world.version)

        def name_of(name: str, *_: object) -> str:
            return name

        def made(name: str, given: int, value: int) -> dict[str, int]:
            self.alive()
            return {"given": given, "value": value}

        @step(key=name_of, version=version)
        def plain(name: str, given: int) -> dict[str, int]:
            return made(name, given, given + world.version)

        @step(key=name_of, verify=lambda output: output["value"] > 0)
        def checked(name: str, given: int) -> dict[str, int]:
            return made(name, given, given * 3)

        @step(key=name_of)
        def reads(name: str, given: int, path: Path) -> dict[str, int]:
            return made(name, given, given + int(path.read_text(encoding="utf-8")))

        @step(key=name_of, retry=Retry(on=Flaky, attempts=ATTEMPTS))
        def flaky(name: str, given: int, times: int) -> dict[str, int]:
            self.alive()
            if world.failures[name] < times:
                world.failures[name] += 1
                raise Flaky(name)
            return made(name, given, given + 7)

        @step(key=name_of)
        def outer(name: str, given: int) -> dict[str, int]:
            inner = next(node.inner for node in world.nodes if node.name == name)
            return made(name, given, self._follow(inner, given, calls))

        dealings = world.provider.dealings()
        if "lookup" in dealings:
            dealings["lookup"] = lambda key, name, times: world.provider.find(key, name)

        @effect(key=name_of, **dealings)
        def post(key: Key, name: str, times: int) -> dict[str, str]:
            self.alive()
            world.sends[name] += 1
            return world.provider.post(str(key), name, times)

        calls = {"plain": plain, "checked": checked, "reads": reads, "flaky": flaky, "outer": outer, "post": post}

        @task(name="machine", on_version_change="ask" if world.asks_about_versions else "record")
        def plan(given: int) -> int:
            return self._follow(world.nodes, given, calls)

        return plan

    def _follow(self, nodes: Sequence[Node], given: int, calls: dict[str, Any]) -> int:
        for node in nodes:
            given = self._call(node, given, calls)
        return given

    def _call(self, node: Node, given: int, calls: dict[str, Any]) -> int:
        match node.kind:
            case "post":
                return given + len(calls["post"](node.name, node.times)["done"])
            case "reads":
                made = calls["reads"](node.name, given, self.world.source(node.name))
            case "flaky":
                made = calls["flaky"](node.name, given, node.times)
            case _:
                made = calls[node.kind](node.name, given)
        return int(made["value"])

"""A state machine over everything a user can do to a run: Hypothesis plays it, in any order, with deaths in between.

A point is a seed for a few dozen games. A game edits the plan, its sources and versions, starts, dies, resumes,
answers, forks, cancels, tampers, restores backups, sets the clock; at its end the run must come to an end.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, note, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from machine_judge import judge, whole
from machine_world import FIRST, KINDS, Lived, Node, Process
from schedule_worlds import CHARACTERS
from tally import Harm, Points, Violation, broken

from milepost.errors import MilepostError, QuestionError, RefusedError, RunEnded
from milepost.records.model import ENDED, RunStatus, StepStarted
from milepost.records.times import format_time
from milepost.runtime.answering import ask_to_cancel
from milepost.runtime.check import check_run
from milepost.runtime.fork import fork_run
from milepost.runtime.verify import verify_run
from milepost.stores.memory import MemoryStore

KIND = "sets of games"
SEEDS = 100_000
GAMES = 20
RULES = 25
STARTS_MAX = 60
POINTS_MAX = 110

LEAVES = [kind for kind in KINDS if kind != "outer"]
LEAF = st.tuples(st.sampled_from(LEAVES), st.integers(0, 2))
CALL = st.one_of(LEAF, st.tuples(st.just("outer"), st.lists(LEAF, min_size=1, max_size=3)))
DEATH = st.one_of(st.none(), st.integers(1, POINTS_MAX))
NUMBER = st.integers(0, 10**6)


class Machine(RuleBasedStateMachine):
    """One game."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="machine-"))
        self.numbers = count(1)
        self.backups: list[MemoryStore] = []
        self.world: Lived

    @initialize(
        character=st.sampled_from(CHARACTERS),
        seal_key=st.sampled_from([None, b"a key that is long enough"]),
        asks=st.booleans(),
        calls=st.lists(CALL, min_size=1, max_size=4),
    )
    def declare(self, character: str, seal_key: bytes | None, asks: bool, calls: list[Any]) -> None:
        self.world = Lived(self.folder, character, seal_key, asks, [])
        self.world.nodes = [self._node(*call) for call in calls]

    def _node(self, kind: str, more: Any) -> Node:
        name = f"n{next(self.numbers)}"
        if kind == "outer":
            return Node(kind, name, inner=tuple(self._node(*leaf) for leaf in more))
        return Node(kind, name, times=more)

    # ── running ──

    @rule(die_at=DEATH)
    def start(self, die_at: int | None) -> None:
        """Start or resume, to the end or to a death."""
        was_ended = self._status() in ENDED
        error = self.world.start(die_at)
        note(f"{self.world.run_id}: {error.code if error else self._status()}")
        if error is not None:
            self._expect(error, was_ended)
        elif self._status() == RunStatus.DONE and not was_ended:
            whole(self.world, self.world.nodes)

    def _expect(self, error: MilepostError, was_ended: bool) -> None:
        told = isinstance(error, QuestionError) or (isinstance(error, RunEnded) and self._status() in ENDED)
        if not told:
            broken(Harm.STUCK, f"{type(error).__name__}: {error}")

    def _status(self) -> str | None:
        row = self.world.store.run(self.world.run_id)
        return None if row is None else row.progress.status

    def _is_known(self) -> bool:
        return self.world.store.run(FIRST) is not None and bool(self.world.records())

    # ── people ──

    @precondition(lambda self: self.world.questions())
    @rule(which=NUMBER, choice=NUMBER)
    def answer(self, which: int, choice: int) -> None:
        open_now = [q for q in self.world.questions() if not self._is_answered(q.question_id)]
        if open_now:
            question = open_now[which % len(open_now)]
            choices = self.world.choices(question)
            chosen = choices[choice % len(choices)]
            note(f"{question.kind} {question.path}: {chosen}")
            self.world.answer(question, chosen)

    def _is_answered(self, question_id: str) -> bool:
        return any(a.question_id == question_id for a in self.world.store.answers(self.world.run_id))

    @precondition(lambda self: self._is_known() and self._status() not in ENDED)
    @rule()
    def cancel(self) -> None:
        at = format_time(self.world.clock.now())
        ask_to_cancel(self.world.store, self.world.run_id, seal_key=self.world.seal_key, by="ada", at=at)

    @precondition(lambda self: self._is_known())
    @rule(which=NUMBER)
    def fork(self, which: int) -> None:
        """Fork from any step that was started."""
        started = list(dict.fromkeys(r.path for r in self.world.records() if isinstance(r, StepStarted)))
        if not started:
            return
        world, new = self.world, f"{FIRST}-{next(self.numbers)}"
        options = world.options()
        path = started[which % len(started)]
        note(f"fork {world.run_id} from {path} to {new}")
        fork_run(
            world.store,
            world.run_id,
            path,
            new,
            seal_key=world.seal_key,
            clock=world.clock,
            environ=options["environ"],
        )
        world.run_ids.append(new)

    @precondition(lambda self: self._is_known())
    @rule()
    def check(self) -> None:
        """`resume --check` says six lines and changes nothing."""
        before = self.world.store.records(self.world.run_id), self.world.store.questions(), dict(self.world.sends)
        task = Process(self.world, None).task()
        lines = check_run(task.spec, self.world.run_id, self.world.store, self.world.run_options())
        assert [line.number for line in lines] == [1, 2, 3, 4, 5, 6]
        after = self.world.store.records(self.world.run_id), self.world.store.questions(), dict(self.world.sends)
        assert before == after

    # ── edits ──

    @rule(call=CALL, at=NUMBER)
    def insert(self, call: Any, at: int) -> None:
        self.world.nodes.insert(at % (len(self.world.nodes) + 1), self._node(*call))

    @precondition(lambda self: len(self.world.nodes) > 1)
    @rule(at=NUMBER)
    def remove(self, at: int) -> None:
        del self.world.nodes[at % len(self.world.nodes)]

    @rule(at=NUMBER)
    def rename(self, at: int) -> None:
        at %= len(self.world.nodes)
        self.world.nodes[at] = replace(self.world.nodes[at], name=f"n{next(self.numbers)}")

    @rule(at=NUMBER)
    def move_to_the_end(self, at: int) -> None:
        self.world.nodes.append(self.world.nodes.pop(at % len(self.world.nodes)))

    @rule()
    def edit_code(self) -> None:
        self.world.version += 1

    @rule(at=NUMBER, content=st.integers(1, 3))
    def edit_source(self, at: int, content: int) -> None:
        sources = [n.name for node in self.world.nodes for n in (node, *node.inner) if n.kind == "reads"]
        if sources:
            self.world.source(sources[at % len(sources)]).write_text(str(content), encoding="utf-8")

    # ── the world ──

    @rule(minutes=st.sampled_from([1, 4, 6, 11, -1, -60]))
    def move_clock(self, minutes: int) -> None:
        self.world.clock.move(timedelta(minutes=minutes))

    @rule()
    def back_up(self) -> None:
        self.backups.append(self.world.store.crash())

    @precondition(lambda self: self.backups)
    @rule(which=NUMBER)
    def restore(self, which: int) -> None:
        """Put an older copy of the store in its place; the world outside has not gone back."""
        self.world.store = self.backups[which % len(self.backups)].crash()
        self.world.went_back = True

    @precondition(lambda self: self._is_known())
    @rule(which=NUMBER, how=st.sampled_from(["body", "gone", "seal", "artifact", "no artifact"]))
    def tamper(self, which: int, how: str) -> None:
        """Change one thing in a copy of the store: `verify` says so, and what a resume reads is refused."""
        world, genuine = self.world, self.world.store
        world.store = genuine.crash()
        try:
            reads_it = tampered(world.store, world.run_id, which, how)
            if reads_it is not None:
                self._is_noticed(reads_it)
        finally:
            world.store = genuine

    def _is_noticed(self, reads_it: bool) -> None:
        world = self.world
        verdicts = verify_run(world.store, world.run_id, world.seal_key, world.options()["environ"])
        if all(verdict.ok for verdict in verdicts):
            broken(Harm.FALSELY_VERIFIED, "verify did not notice what was tampered with")
        if reads_it:
            sends, error = dict(world.sends), world.start(None)
            if not isinstance(error, RefusedError) or dict(world.sends) != sends:
                broken(Harm.FALSELY_VERIFIED, f"a tampered journal was gone on with: {error}")

    # ── what always holds ──

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "world"):
            judge(self.world)

    def teardown(self) -> None:
        try:
            if hasattr(self, "world"):
                self._come_to_an_end()
        finally:
            shutil.rmtree(self.folder)

    def _come_to_an_end(self) -> None:
        """Resume, answering what is asked, until the run has ended."""
        asked: list[str] = []
        for _ in range(STARTS_MAX):
            self.start(None)
            if self._status() in ENDED:
                judge(self.world)
                return
            for question in self.world.questions():
                if not self._is_answered(question.question_id):
                    choice = self.world.choices(question)[0]
                    asked.append(f"{question.kind} {question.path}: {choice}")
                    self.world.answer(question, choice)
        broken(Harm.STUCK, f"not done after {STARTS_MAX} starts: {self._status()}, {asked[-6:]}")


def tampered(store: MemoryStore, run_id: str, which: int, how: str) -> bool | None:
    """Change one record or artifact. Return whether a resume must read it; None when there is none to change."""
    run = store._runs[run_id]
    at = which % len(run.records)
    record = run.records[at]
    if how == "gone":
        del run.records[at]
    elif how == "body":
        run.records[at] = record._replace(body=flipped(record.body))
    elif how == "seal":
        run.records[at] = record._replace(seal=flipped(record.seal))
    elif not run.artifacts:
        return None
    else:
        _tamper_artifact(run.artifacts, which, how)
        return False
    return record.chain == ""


def _tamper_artifact(artifacts: dict[str, Any], which: int, how: str) -> None:
    digest = sorted(artifacts)[which % len(artifacts)]
    found = artifacts.pop(digest)
    if how == "artifact":
        artifacts[digest] = found._replace(data=flipped(found.data or b"0"))


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@contextmanager
def opened(folder: Path) -> Iterator[Points]:
    yield [str(number) for number in range(SEEDS)], attempt


def attempt(point: str) -> None:
    """Play the games of one seed. Raises: Violation, with the shortest game that Hypothesis found."""
    try:
        play(Machine, int(point), GAMES, RULES)
    except Violation as violation:
        broken(violation.harm, "\n".join([str(violation), *getattr(violation, "__notes__", ())]))
    except BaseExceptionGroup as several:
        told = ("\n".join([str(error), *getattr(error, "__notes__", ())]) for error in several.exceptions)
        broken(Harm.FALSELY_VERIFIED, "\n\n".join(told))


def play(machine: type[Machine], number: int, games: int, rules: int) -> None:
    seeded: Any = seed(number)(type("Seeded", (machine,), {}))
    run_state_machine_as_test(
        seeded,
        settings=settings(
            max_examples=games,
            stateful_step_count=rules,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )

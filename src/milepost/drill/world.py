"""One world of a drill: an empty folder to work in, a store, a clock, and what is outside; processes started in it.

Nothing is shared between worlds but the test provider, which tells them apart by their address. Called by the trials.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

from milepost.drill.moment import MovedClock
from milepost.drill.named import Named
from milepost.drill.order import RUN_ID, STUCK, Order, Send, Told, read_sends, read_told
from milepost.drill.standing import Standing, newest_record, read_standing
from milepost.drill.starter import Starter, Stuck
from milepost.records.canonical import canonical, parse
from milepost.records.model import QuestionKind
from milepost.records.rows import AnswerRow
from milepost.records.times import format_time
from milepost.runtime import answering
from milepost.stores.contract import QuestionRow
from milepost.stores.sqlite.store import SqliteStore

STARTS_MAX = 8
"""Starts after which a run that still asks, waits or fails is stuck."""
POLICIES = (QuestionKind.ATTEMPTS_USED, QuestionKind.LIMIT_REACHED)
EXPECTED_QUESTIONS = (QuestionKind.OUTCOME_UNKNOWN, *POLICIES)
"""What a run may ask after an interruption: what nobody but a person can know, and what a policy says."""


@dataclass(frozen=True, slots=True)
class Drilled:
    """What is drilled: the task, its inputs as recorded JSON, how its outside is set up and looked at."""

    task: Named
    name: str
    inputs: str = "{}"
    observe: Named | None = None
    setup: Named | None = None
    teardown: Named | None = None
    real_time: bool = False


class Broken(Exception):
    """The user's setup, teardown or observe raised, or a process got stuck: the trial says nothing about the task."""


@dataclass(frozen=True, slots=True)
class End:
    """How a run ended after all its resumes: `asked` are the kinds of questions on the way."""

    told: Told
    asked: tuple[str, ...] = ()
    problem: str = ""  # a question nothing about an interruption explains, or no end at all


class World:
    """A context: set up on the way in, torn down and removed on the way out."""

    def __init__(self, folder: Path, drilled: Drilled, starter: Starter, provider: str = "") -> None:
        self.base, self.drilled, self.starter, self._provider = folder, drilled, starter, provider
        self.folder = folder / "world"
        self.store = folder / "store" / "store.sqlite"
        self.state = folder / "state"
        self.sends_file = folder / "sends"
        self._environ: dict[str, str] = {}
        self._keeper: int | None = None
        self._started = 0
        self._kept: Path | None = None

    def __enter__(self) -> World:
        for made in (self.folder, self.store.parent, self.state, self.base / "tmp"):
            made.mkdir(parents=True)
        if self.drilled.setup is not None or self.drilled.teardown is not None:
            self._set_up()
        return self

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        """Tear down and remove. Raises: Broken when it cannot be kept or teardown failed, and nothing else did."""
        status = self.starter.end(self._keeper) if self._keeper is not None else 0
        said = self.output() if status else ""
        try:
            if self._kept is not None:
                _copy(self.base, self._kept)
        finally:
            shutil.rmtree(self.base, ignore_errors=True)
        if status and error is None:
            raise Broken(f"teardown failed: {said}")

    def keep_in(self, folder: Path) -> None:
        """Leave a copy of this world there when it is over, for somebody to look at; under a name that is free."""
        self._kept = folder

    def _set_up(self) -> None:
        """Start the process that keeps the world's setup alive. Raises: Broken."""
        order = self.order("keep", function=self.drilled.setup, teardown=self.drilled.teardown)
        pid = self.starter.start(order)  # returns when it is set up, or ended
        found = read_told(Path(order.told), 0)
        if "environ" not in found.data:
            self.starter.wait(pid)
            raise Broken(f"setup failed: {found.said}\n{self.output()}")
        self._keeper = pid
        self._environ = dict(found.data["environ"])

    # ── starting ────────────────────────────────────────────────────────────────────────────────────

    def order(self, do: str, environ: Mapping[str, str] | None = None, **more: Any) -> Order:
        """Return an order for a process in this world."""
        self._started += 1
        own = {
            "MILEPOST_DRILL_WORLD": str(self.folder),
            "MILEPOST_DRILL_PROVIDER": self._provider,
            "MILEPOST_STORE": str(self.store),
            "XDG_STATE_HOME": str(self.state),
            "TMPDIR": str(self.base / "tmp"),
        }
        return Order(
            do=do,
            folder=str(self.folder),
            environ={**self._environ, **own, **(environ or {})},
            told=str(self.base / f"told-{self._started}"),
            output=str(self.base / "output"),
            task=self.drilled.task,
            inputs=self.drilled.inputs,
            sends=str(self.sends_file),
            clock=None if self.drilled.real_time else str(self.base / "clock"),
            **more,
        )

    def run(self, environ: Mapping[str, str] | None = None, **more: Any) -> Told:
        """Start the run, or resume it, in a new process; wait for its end. Raises: Broken when it is stuck."""
        return self.carry_out(self.order("run", environ, **more))

    def carry_out(self, order: Order) -> Told:
        pid = self.starter.start(order)
        try:
            return read_told(Path(order.told), self.starter.wait(pid))
        except Stuck:
            return Told(STUCK, {"code": "stuck", "message": "the process did not end in time and was killed"})

    def finish(self, **more: Any) -> End:
        """Resume in new processes until the run is done. Questions about outcomes are answered with the truth."""
        asked: list[str] = []
        told = Told(0)
        for _ in range(STARTS_MAX):
            told = self.run(**more)
            asked += told.data.get("asked", ())
            if told.status == 0:
                return End(told, tuple(asked))
            if told.status == STUCK:
                break
            if told.status == 4:
                kinds, odd = self._answer()
                asked += kinds
                if odd:
                    return End(told, tuple(asked), odd)
        return End(told, tuple(asked), f"not done after {STARTS_MAX} starts: {told.said}")

    def _answer(self) -> tuple[list[str], str]:
        """Answer every open question as a person would who knows what happened; name one nobody should have to."""
        kinds: list[str] = []
        with closing(SqliteStore(self.store, create=False)) as store:
            for question in store.questions(RUN_ID):
                if question.kind not in EXPECTED_QUESTIONS:
                    return kinds, f"it asks {question.kind}: {question.sentence}"
                kinds.append(question.kind)
                store.answer(self._truth(question))
        return kinds, ""

    def _truth(self, question: QuestionRow) -> AnswerRow:
        at = format_time(MovedClock(self.base / "clock").now())
        role = next(iter(answering.asked(question).about.get("approvers", ())), "")
        given = AnswerRow(question.question_id, RUN_ID, "again", "the drill", at, role=role)
        if question.kind in POLICIES:
            return given
        accepted = [s for s in self.sends() if s.path == question.path and s.outcome == "returned"]
        if not accepted:
            return replace(given, choice="not-applied")
        result = accepted[0].result
        data = canonical(parse(result.encode("utf-8"))) if result is not None else None
        return replace(given, choice="applied", ref=accepted[0].ref, result=data)

    # ── looking ─────────────────────────────────────────────────────────────────────────────────────

    def sends(self) -> list[Send]:
        return read_sends(self.sends_file)

    def observed(self) -> Any:
        """Return what `observe` sees of the outside now, None without one. Raises: Broken."""
        if self.drilled.observe is None:
            return None
        told = self.carry_out(self.order("observe", function=self.drilled.observe))
        if told.status != 0:
            raise Broken(f"observe failed: {told.said}")
        return told.data["observed"]

    def standing(self, told: Told) -> Standing:
        """Return what stands at the end. Raises: Broken, RefusedError."""
        here = str(self.folder)
        return read_standing(self.store, self.state, here, told.data.get("result"), self.observed())

    def newest_record(self) -> str:
        return newest_record(self.store)

    def move_time(self, seconds: float) -> None:
        MovedClock(self.base / "clock").move(timedelta(seconds=seconds))

    def output(self) -> str:
        """Return the last lines the user's code printed."""
        path = self.base / "output"
        return "\n".join(path.read_text("utf-8", "replace").splitlines()[-8:]) if path.exists() else ""


def _copy(base: Path, to: Path) -> None:
    """Copy a world under this name, or with a number behind it. Crash: a part of it. Raises: Broken."""
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(base, _made(to), symlinks=True, dirs_exist_ok=True)
    except OSError as error:
        raise Broken(f"its world cannot be kept in {to}: {error.strerror or error}") from error


def _made(to: Path) -> Path:
    """Make a folder that was not there before. Crash: an empty one. Raises: OSError."""
    place, numbers = to, count(2)
    while True:
        try:
            place.mkdir()
        except FileExistsError:  # another trial's, or of an earlier drill
            place = to.with_name(f"{to.name}-{next(numbers)}")
        else:
            return place


def is_refusal(told: Told) -> bool:
    """Say whether a resume was refused because something cannot be trusted, or asks because the store went back."""
    return told.code in ("corrupt-record", "store-went-back")

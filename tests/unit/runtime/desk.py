"""Where a test sits: one store, one clock, runs that are started, killed and resumed, and a person who answers.

A death is simulated inside this process: at a crash point everything durable is set aside as the next process
would find it, and an exception unwinds whatever was under way; what that still writes goes to the dead store.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from clock import MovableClock

from milepost.protocol.snapshot import Snapshot
from milepost.records.model import QuestionAsked, Record
from milepost.records.rows import AnswerRow, CancelRow
from milepost.records.times import format_time
from milepost.records.written import decode_record
from milepost.runtime import crash
from milepost.runtime.opening import read_snapshot
from milepost.stores.contract import QuestionRow, Store
from milepost.stores.memory import MemoryStore
from milepost.stores.sqlite.store import SqliteStore


class Death(BaseException):
    """The process is gone from here on."""


class Desk:
    """One store and its successors, and what a test does with them."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self.folder = store, folder
        self.clock = MovableClock()
        self.seal_key: bytes | None = None
        self._deaths = 0
        self._opened = [store]
        self._state = Path(os.environ["XDG_STATE_HOME"])

    # ── runs ──

    def options(self, **more: Any) -> dict[str, Any]:
        return {"store": self.store, "clock": self.clock, "seal_key": self.seal_key, **more}

    def run(self, task: Any, *args: Any, run_id: str = "r", **options: Any) -> Any:
        return task.options(**self.options(**options)).run(run_id, *args)

    def resume(self, task: Any, *, run_id: str = "r", **options: Any) -> Any:
        return task.options(**self.options(**options)).resume(run_id)

    def dies(
        self,
        task: Any,
        *args: Any,
        at: str,
        phase: str = "durable",
        nth: int = 1,
        run_id: str = "r",
        settled: bool = False,
    ) -> None:
        """Start or resume a run whose process dies at the n-th passing of this crash point.

        `settled`: so late that what nobody waited for is durable, too.
        """
        before = self.store
        with self._armed(at, phase, nth, settled=settled), pytest.raises(Death):
            self.run(task, *args, run_id=run_id)
        assert self.store is not before, f"the crash point {at} {phase} was not reached"

    def dies_at_its_end(self, task: Any, *args: Any, run_id: str = "r") -> None:
        """Start or resume a run whose process dies when all is done and durable, only its end is not recorded."""
        self.dies(task, *args, at="append:run_ended", phase="before", run_id=run_id, settled=True)

    @contextmanager
    def _armed(self, at: str, phase: str, nth: int, *, settled: bool = False) -> Iterator[None]:
        passed = 0
        is_dead = False

        def reached(label: str, now: str) -> None:
            nonlocal passed, is_dead
            passed += (label, now) == (at, phase)
            if passed >= nth and not is_dead:
                is_dead = True
                if settled:
                    self._let_the_store_settle()
                self.next_process()
            if is_dead:
                raise Death

        crash.armed = reached
        try:
            yield
        finally:
            crash.armed = None
            if is_dead:
                self._forget_what_the_dead_said()

    def next_process(self) -> None:
        """Go on with the store as another process would find it now: only what is durable."""
        shutil.rmtree(self.folder / "state", ignore_errors=True)
        shutil.copytree(self._state, self.folder / "state")
        if isinstance(self.store, MemoryStore):
            self.store = self.store.crash()
        else:
            self._deaths += 1
            self.store = SqliteStore(self._copied(Path(self.store.location)), create=False)
        self._opened.append(self.store)

    def _copied(self, path: Path) -> Path:
        left = self.folder / f"left-{self._deaths}"
        shutil.copytree(path.parent, left, ignore=shutil.ignore_patterns("*-shm"))
        return left / path.name

    def _let_the_store_settle(self) -> None:
        """Let pass the moment after which an append nobody waited for is durable."""
        if isinstance(self.store, MemoryStore):
            self.store.flush()
        elif isinstance(self.store, SqliteStore):
            self.store._committer.flush()

    def _forget_what_the_dead_said(self) -> None:
        """Take back what a dead process told its witness while it was unwound."""
        shutil.rmtree(self._state)
        shutil.copytree(self.folder / "state", self._state)

    def close(self) -> None:
        for store in self._opened:
            store.close()

    # ── people ──

    def cancel(self, run_id: str = "r") -> None:
        """Ask a run to end, as the command line does."""
        self.store.cancel(CancelRow(run_id, "ada", format_time(self.clock.now()), "not needed any more"))

    @property
    def questions(self) -> list[QuestionRow]:
        return self.store.questions()

    @property
    def question(self) -> QuestionRow:
        (question,) = self.questions
        return question

    def asked(self, question: QuestionRow | None = None) -> QuestionAsked:
        """Return the one open question (or this one) as the journal holds it."""
        record = decode_record("question_asked", (question or self.question).body)
        assert isinstance(record, QuestionAsked)
        return record

    def evidence(self, question: QuestionRow | None = None) -> Any:
        """Return the evidence of the one open question, or of this one."""
        question = question or self.question
        pointer = self.asked(question).evidence
        assert pointer is not None
        data = self.store.artifacts(question.run_id, [pointer.digest])[pointer.digest].data
        assert data is not None
        return json.loads(data)

    def answer(
        self, choice: str, *, ref: str | None = None, result: Any = ..., question: QuestionRow | None = None
    ) -> AnswerRow:
        """Answer the one open question (or this one), as the command line does."""
        question = question or self.question
        data = None if result is ... else json.dumps(result).encode()
        at = format_time(self.clock.now())
        return self.store.answer(
            AnswerRow(question.question_id, question.run_id, choice, "ada", at, "looked into it", ref, data)
        )

    # ── what is recorded ──

    def records(self, *kinds: str, run_id: str = "r") -> list[Any]:
        found: list[Record] = [decode_record(line.kind, line.body) for line in self.store.records(run_id)]
        return [record for record in found if not kinds or record.kind in kinds]

    def snapshot(self, run_id: str = "r") -> Snapshot:
        return read_snapshot(self.store, run_id, self.seal_key).snapshot

    def status(self, run_id: str = "r") -> str:
        row = self.store.run(run_id)
        assert row is not None
        return str(row.progress.status)

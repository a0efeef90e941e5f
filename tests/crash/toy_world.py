"""One world of a crash test: a folder with a store, a clock and inputs; starts in it; what stands there afterwards."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clock import START, SharedClock
from toy_orders import RUN_ID

from milepost.records.canonical import canonical
from milepost.records.model import Outcome, OutcomeRecorded, Record, StepVerified
from milepost.records.rows import AnswerRow
from milepost.records.times import format_time
from milepost.runtime.opening import check_inner_heads, read_snapshot
from milepost.stores.contract import QuestionRow
from milepost.stores.sqlite.store import SqliteStore

HERE = Path(__file__).parent
KILLED = -signal.SIGKILL
GO_ON = {"attempts_used": "again", "approval": "approve"}
"""Kind of question -> the answer that lets the run go on."""
STARTS_MAX = 12
"""Starts after which a world that still asks or waits is given up."""


class Starter:
    """A warm process that forks one process per start."""

    def __init__(self) -> None:
        self.path = os.pathsep.join([str(HERE), str(HERE.parent), *filter(None, sys.path)])
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "warm_start.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": self.path},
        )

    def start(self, order: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


@contextmanager
def provider(database: Path) -> Iterator[int]:
    """Run the test provider in a process of its own; yield its port."""
    command = [sys.executable, str(HERE / "toy_provider.py"), str(database)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


@dataclass(frozen=True)
class Standing:
    """What must be equal whatever happened on the way: never wording, never times."""

    report: Any
    verified: dict[str, tuple[str, tuple[str, ...]]]  # path -> digest of the output, checks passed
    applied: dict[str, tuple[str, str | None, str]]  # path -> key, reference, digest of the result
    sent: dict[str, int]  # key -> how often the provider applied it
    file: str


@dataclass
class World:
    folder: Path
    flavour: str
    character: str
    starter: Starter
    port: int
    started: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir()
        (self.folder / "input.txt").write_text("alpha beta", encoding="utf-8")

    def start(self, run_id: str = RUN_ID, **environ: object) -> int:
        """Start the run in a new process; return its exit status. Notes the points it passes in `points-N`."""
        order = {
            "folder": str(self.folder),
            "environ": self._environ(environ),
            "flavour": self.flavour,
            "run_id": run_id,
        }
        return self.starter.start(order)

    def open(self, run_id: str = RUN_ID, **environ: object) -> subprocess.Popen[bytes]:
        """Start the run in a new process from nothing, and leave it to the caller."""
        given = {"PATH": os.environ["PATH"], "PYTHONPATH": self.starter.path, **self._environ(environ)}
        command = [sys.executable, "-c", "import sys, toy_plans; sys.exit(toy_plans.start(*sys.argv[1:]))"]
        output = (self.folder / "output").open("ab")
        with output:
            return subprocess.Popen(
                [*command, self.flavour, run_id], cwd=self.folder, env=given, stdout=output, stderr=output
            )

    def _environ(self, environ: dict[str, object]) -> dict[str, str]:
        self.started += 1
        return {
            "TOY_CHARACTER": self.character,
            "TOY_WORLD": self.folder.name,
            "TOY_PORT": str(self.port),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "MILEPOST_CRASH_LOG": str(self.folder / f"points-{self.started}"),
            **{name: str(value) for name, value in environ.items()},
        }

    def points(self, start: int = 1) -> list[str]:
        """Return the crash points that a start passed, as `label phase`."""
        path = self.folder / f"points-{start}"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def output(self) -> str:
        return (self.folder / "output").read_text(encoding="utf-8")

    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "told").read_text(encoding="utf-8"))
        return found

    def clock(self) -> SharedClock:
        return SharedClock(self.folder / "clock")

    def bodies(self) -> Counter[str]:
        return Counter((self.folder / "bodies").read_text(encoding="utf-8").split("\n")[:-1])

    @contextmanager
    def store(self) -> Iterator[SqliteStore]:
        with closing(SqliteStore(self.folder / "store.sqlite", create=False)) as store:
            yield store

    def records(self, run_id: str = RUN_ID) -> list[Record]:
        """Return every record of the run, all chains checked; none when it was never created."""
        if not (self.folder / "store.sqlite").exists():
            return []
        with self.store() as store:
            if store.run(run_id) is None:
                return []
            opened = read_snapshot(store, run_id, None, every_chain=True)
            if opened.refusal is not None:
                raise opened.refusal
            check_inner_heads(opened)
            return [record for _, record in opened.records]

    def ledger(self) -> dict[str, list[dict[str, str]]]:
        """Return what the provider applied, per key."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with closing(connection):
            connection.request("GET", f"/{self.character}/{self.folder.name}")
            found: dict[str, list[dict[str, str]]] = json.loads(connection.getresponse().read())
            return found

    def answer_from_ledger(self) -> None:
        """Answer what is open as a person would who looks at the provider; to try again, or to go on, where asked."""
        receipts = self.ledger()
        with self.store() as store:
            for question in store.questions(RUN_ID):
                if question.kind in GO_ON:
                    store.answer(answer(question, GO_ON[question.kind], None))
                else:
                    key = json.loads(question.body)["sentence"].partition("(key ")[2].partition(")")[0]
                    known = receipts.get(key)
                    store.answer(answer(question, "applied" if known else "not-applied", known and known[0]))

    def finish(self) -> list[str]:
        """Resume in new processes until the run is done; return the codes of the questions on the way."""
        asked: list[str] = []
        for _ in range(STARTS_MAX):
            status = self.start()
            if status == 0:
                return asked
            assert status == 4, (status, self.told(), self.output()[-3000:])
            asked.append(self.told()["code"])
            self.answer_from_ledger()
        raise AssertionError(f"not done after {STARTS_MAX} starts: {asked}, {self.told()}")

    def standing(self) -> Standing:
        """Return what is to be compared with the undisturbed reference."""
        records = self.records()
        verified = {r.path: (r.output.digest, r.checks) for r in records if isinstance(r, StepVerified)}
        applied = [r for r in records if isinstance(r, OutcomeRecorded) and r.outcome == Outcome.APPLIED]
        return Standing(
            self.told()["report"],
            verified,
            {r.path: (r.key, r.ref, r.result.digest if r.result else "") for r in applied},
            {key: len(sends) for key, sends in self.ledger().items()},
            (self.folder / "words.txt").read_text(encoding="utf-8"),
        )


def answer(question: QuestionRow, choice: str, receipt: dict[str, str] | None) -> AnswerRow:
    """Return an answer of a person's, with what the provider has where it has something."""
    ref, result = (receipt["ref"], canonical(receipt)) if receipt else (None, None)
    return AnswerRow(question.question_id, RUN_ID, choice, "ada", format_time(START), ref=ref, result=result)

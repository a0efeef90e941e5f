"""A run with all an audit record must tell: nested steps, an effect in doubt, answers, a late one, hostile text."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from clock import MovableClock

from milepost import Applied, CannotTell, Found, Key, NotFound, QuestionError, Secret, StepFailed, effect, step, task
from milepost.audit.contents import heading_of_run
from milepost.audit.exporting import Export
from milepost.audit.files import Form, write_record
from milepost.audit.lines import Line
from milepost.errors import AlreadyAnswered
from milepost.records.identity import Identity
from milepost.runtime.answering import answer_question
from milepost.runtime.opening import row_of
from milepost.runtime.verify import verify_run
from milepost.stores.contract import Store
from milepost.stores.memory import MemoryStore

RUN = "october"
HOSTILE = "=1+1;=cmd|' /C calc'!A0,<script>alert(1)</script>\x1b[2J\u202egnp\t@SUM(1)\n'quoted'"
SECRET = "swordfish-9000"
KEY = b"a key for tests, long enough"


class Lost(Exception):
    """The provider's answer did not arrive."""


def find(key: Key, line: str, token: Secret) -> Found[str] | NotFound | CannotTell:
    return CannotTell("the provider is being moved")


@step(verify=lambda output: len(output) == 2)
def read(month: str) -> list[str]:
    return [f"{month}-1", HOSTILE]


@effect(key=lambda line, token: line[:9], lookup=find, settle=timedelta(0), provider="queue", permission="queue:write")
def post(key: Key, line: str, token: Secret) -> Applied[str]:
    assert token.read() == SECRET
    if line == HOSTILE:
        raise Lost(f"no answer with {token.read()}")
    return Applied(f"posted {line}", ref=f"ref-{line}")


@step
def book(line: str) -> str:
    return post(line, Secret("QUEUE_TOKEN"))


@task(instructions="Be exact.", model="model-1", permissions=["queue:write", "never:used"])
def told(month: str) -> list[str]:
    return [book(line) for line in read(month)]


def tell_a_run(seal_key: bytes | None) -> Store:
    """Return the store of a run that is done: its second effect was in doubt, a person settled it, another was late."""
    store, clock = MemoryStore(), MovableClock()
    plan = told.options(store=store, clock=clock, seal_key=seal_key, wait=False)
    for expected, go in ((StepFailed, lambda: plan.run(RUN, "2026-10")), (QuestionError, lambda: plan.resume(RUN))):
        try:
            go()
        except expected as error:
            stopped = error
    _decide(store, str(stopped.facts["question_id"]), seal_key)
    plan.resume(RUN)
    return store


def _decide(store: Store, question_id: str, seal_key: bytes | None) -> None:
    for name, choice, more in (
        ("ada@desk", "applied", {"result": '"seen"', "ref": "by-hand"}),
        ("bob@desk", "stop", {}),
    ):
        try:
            answer_question(
                store,
                question_id,
                choice,
                by=Identity(name),
                seal_key=seal_key,
                at="2026-11-02T09:00:00.000000+00:00",
                note=f"{name} looked",
                **more,
            )
        except AlreadyAnswered:
            assert name == "bob@desk"


def exported(
    store: Store, seal_key: bytes | None, *, with_artifacts: bool = True, verified: bool = True
) -> Iterator[Line]:
    """Export the run as the command line does."""
    row = row_of(store, RUN)
    verdicts = verify_run(store, RUN, seal_key, os.environ) if verified else ()
    at = "2026-11-02T10:00:00.000000+00:00"
    heading = heading_of_run(row, verdicts, at=at, by="ada@desk", with_artifacts=with_artifacts)
    return Export(store, heading, row.cancel).lines(seal_key)


@effect(approve="before", approvals=2, approvers=("ada", "cid", "finance"), summary="pay {amount}", provider="bank")
def pay(key: Key, amount: int) -> str:
    return f"paid {amount}"


@task
def paid(amount: int) -> str:
    return pay(amount)


def tell_of_approvals() -> Store:
    """Return the store of a run that two people allowed, and a third came too late."""
    store, clock = MemoryStore(), MovableClock()
    plan = paid.options(store=store, clock=clock, wait=False)
    try:
        plan.run(RUN, 100)
    except QuestionError as asked:
        question_id = str(asked.facts["question_id"])
    for by in (Identity("ada@desk"), Identity("bob@desk", ("finance",), door="console"), Identity("cid@desk")):
        with suppress(AlreadyAnswered):
            at = "2026-11-02T09:00:00.000000+00:00"
            answer_question(store, question_id, "approve", by=by, seal_key=None, at=at, note=f"{by.user} agrees")
    plan.resume(RUN)
    return store


def write_file(lines: Iterator[Line], form: Form, path: Path) -> None:
    """Write a record to a file."""
    with path.open("wb") as out:
        write_record(lines, form, out)

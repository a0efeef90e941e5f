"""A user's file is clean under strict mypy and pyright, and their mistakes are seen before anything runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)

CLEAN = """
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import assert_type

import milepost
from milepost import (
    Applied, CannotTell, Found, Key, NotApplied, NotFound, Retry, Secret, Sql, StepFailed,
    carry, current_run, effect, heartbeat, last_heartbeat, spent, step, task,
)


@dataclass(frozen=True)
class Invoice:
    invoice_number: str
    lines: int


@dataclass(frozen=True)
class Mismatch:
    invoice_number: str
    amount: Decimal


@dataclass(frozen=True)
class Receipt:
    number: int


class RateLimited(Exception):
    retry_after: float = 3


def every_invoice_has_lines(output: list[Invoice], mails: list[Path]) -> bool | str:
    return all(invoice.lines for invoice in output) or f"an invoice of {len(mails)} mails has no lines"


@step(verify=every_invoice_has_lines, next="Match the line items to purchase orders.")
def extract(mails: list[Path]) -> list[Invoice]:
    heartbeat(1, len(mails), "reading", cursor={"page": 1})
    said = last_heartbeat()
    spent(input_tokens=10, output_tokens=3, cost=Decimal("0.01"))
    return [Invoice(str(said.done if said else 0), 1)]


@step(
    sources=[Sql("orders.sqlite", "select * from orders order by id")],
    unwatched=["orders"],
    next="Post the exceptions to the accounting queue.",
    retry=Retry(on=(RateLimited, OSError), attempts=2, deadline=timedelta(hours=1), then="raise"),
)
def match(invoices: list[Invoice], orders: Path, *, strict: bool = True) -> list[Mismatch]:
    return []


@step
def weigh(mismatch: Mismatch) -> int:
    return 1


@step
async def rank(mismatch: Mismatch) -> str:
    return mismatch.invoice_number


@step(key=lambda mismatch: mismatch.invoice_number)
async def describe(mismatch: Mismatch, style: str = "short") -> str:
    return style


def find(key: Key, mismatch: Mismatch) -> Found[Receipt] | NotFound | CannotTell:
    return NotFound()


async def find_async(key: Key, mismatch: Mismatch) -> Found[Receipt] | NotFound | CannotTell:
    return CannotTell("down")


@effect(
    key=lambda mismatch: mismatch.invoice_number, lookup=find, settle=timedelta(seconds=30),
    key_lifetime=timedelta(hours=24), retry=Retry(on=RateLimited, attempts=6), permission="accounting:write",
    rejected=ValueError, ref=lambda receipt: str(receipt.number), provider="accounting",
    approve="before", approvers=("finance", "ana@host"), approvals=2, approval_expires=timedelta(hours=24),
    summary=lambda mismatch: f"Post {mismatch.invoice_number}",
)
def post(key: Key, mismatch: Mismatch) -> Receipt:
    if not mismatch.amount:
        raise NotApplied("nothing to post")
    return Receipt(len(str(key)))


@effect(lookup=find_async, settle=timedelta(0), scope="run")
async def post_async(key: Key, mismatch: Mismatch) -> Applied[Receipt]:
    return Applied(Receipt(1), ref="no. 1")


@effect
def bare(key: Key, n: int) -> str:
    return str(n)


@effect
async def bare_async(key: Key, n: int) -> Applied[str]:
    return Applied(str(n))


@effect()
def mail(key: Key, address: str, *, password: Secret) -> Applied[int]:
    return Applied(1)


@task(instructions=Path("prompts/reconcile.md"), model="m", tools=[extract], permissions=["accounting:write"])
def reconcile(month: str) -> list[Receipt]:
    invoices = extract(sorted(Path("mail", month).glob("*.eml")))
    assert_type(invoices, list[Invoice])
    mismatches = match(invoices, Path("orders.sqlite"), strict=False)
    assert_type(mismatches, list[Mismatch])
    assert_type(weigh.map(mismatches, concurrency=4), list[int])
    assert_type(post(mismatches[0]), Receipt)
    assert_type(mail("a@b", password=Secret("SMTP_PASSWORD")), int)
    assert_type(carry(weigh)(mismatches[0]), int)
    milepost.sleep(timedelta(minutes=5), name="settle")
    try:
        return post.map(mismatches, concurrency=8)
    except StepFailed as failed:
        raise RuntimeError(failed.path) from failed


@task
async def reconcile_async(month: str, limit: int = 3) -> int:
    invoices = await extract.aio([Path(month)])
    assert_type(invoices, list[Invoice])
    mismatches = await match.aio(invoices, Path("orders.sqlite"))
    ranked, described = await asyncio.gather(rank(mismatches[0]), describe(mismatches[0], style="long"))
    assert_type(ranked, str)
    assert_type(described, str)
    assert_type(await rank.map(mismatches, concurrency=3), list[str])
    assert_type(await post_async(mismatches[0]), Receipt)
    assert_type(await post_async.map(mismatches), list[Receipt])
    assert_type(await post.aio(mismatches[0]), Receipt)
    await milepost.sleep.aio(60)
    run = current_run()
    assert_type(run.step("count", count)(["a"]), int)
    assert_type(run.effect("later", later)("a"), int)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(rank(mismatches[0]))
    assert_type(first.result(), str)
    return limit


def count(words: Sequence[str]) -> int:
    return len(words)


def later(key: Key, word: str) -> int:
    return len(word)


assert_type(reconcile.run("2026-10", month="2026-10"), list[Receipt])
assert_type(reconcile.options(wait=False).resume("2026-10"), list[Receipt])
assert_type(reconcile("2026-10"), list[Receipt])
assert_type(asyncio.run(reconcile_async.run("r", "2026-10", limit=4)), int)
assert_type(asyncio.run(reconcile_async.options(wait=False).resume("r")), int)
assert_type(bare.plain(Key("test"), 1), str)
assert_type(asyncio.run(bare_async.plain(Key("test"), 1)), str)
assert_type(post.plain(Key("test"), Mismatch("a", Decimal(1))), Receipt)
assert_type(asyncio.run(post_async.plain(Key("test"), Mismatch("a", Decimal(1)))), Receipt)
"""

PLANTED = """
import asyncio
from datetime import timedelta

from milepost import Key, Retry, effect, step, task


@step
def double(x: int) -> int:
    return 2 * x


@step
async def triple(x: int) -> int:
    return 3 * x


@effect(key=lambda x: x)
def post(key: Key, x: int) -> str:
    return str(x)


@task
def plan(month: str) -> int:
    return 1


@task
async def plan_async(month: str) -> int:
    wrong: str = triple(1)  # planted: not awaited
    also: str = await triple(1)  # planted: an int
    return await double.aio("1")  # planted: a str


double("1")  # planted: a str
double(1, 2)  # planted: one argument
double(1).upper()  # planted: an int
double.map(["1"])  # planted: items of another type
post(Key("k"), 1)  # planted: callers do not give the key
post("1")  # planted: a str
post(1).bit_length()  # planted: a str
post.plain(1)  # planted: the key is missing
plan.run(month="2026-10")  # planted: the run id is missing
plan.run("r", year=2026)  # planted: no such input
plan.run("r", month=10)  # planted: an int
plan.resume("r").upper()  # planted: an int
plan.options(shadow_of=True)  # planted: no such option
asyncio.run(plan_async.run("r"))  # planted: the month is missing


@step(nxt="post")  # planted: no such option
def misspelled(x: int) -> int:
    return x


@step(why="because")  # planted: not one of the reasons
def reasoned(x: int) -> int:
    return x


@step(retry=Retry(on=3))  # planted: no exception class
def retried(x: int) -> int:
    return x


@step(review="before")  # planted: a review comes after
def reviewed(x: int) -> int:
    return x


@effect(approve="after")  # planted: an effect is approved before
def approved(key: Key, x: int) -> int:
    return x


@effect(scope="store")  # planted: no such scope
def scoped(key: Key, x: int) -> int:
    return x


@effect(settle=30)  # planted: no timedelta
def settled(key: Key, x: int) -> int:
    return x


@effect  # planted: its first parameter is no Key
def keyless_and_bare(n: int) -> int:
    return n


@effect()  # planted: its first parameter is no Key
def keyless(x: int) -> int:
    return x


def find(key: Key, x: int) -> int:
    return x


@effect(lookup=find, settle=timedelta(0))  # planted: a lookup answers Found, NotFound or CannotTell
def looked_up(key: Key, x: int) -> int:
    return x
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "user.py"
    path.write_text(text, encoding="utf-8")
    return path


def planted(text: str) -> set[int]:
    return {number for number, line in enumerate(text.splitlines(), 1) if "# planted" in line}


def reported(output: str, path: Path) -> set[int]:
    pattern = rf"{re.escape(path.name)}:(\d+)(?::\d+)?(?::| -) error"
    return {int(number) for number in re.findall(pattern, output)}


def mypy(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file=", str(path)]
    return subprocess.run(command, capture_output=True, text=True, cwd=path.parent, check=False)


def pyright(path: Path) -> subprocess.CompletedProcess[str]:
    (path.parent / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict", "include": ["user.py"]}')
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(path)]
    environ = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    done = subprocess.run(
        command[:-1], capture_output=True, text=True, cwd=path.parent, env=environ, check=False, timeout=240
    )
    if not re.search(r"\d+ errors?, ", done.stdout):
        pytest.skip(f"pyright cannot run here: {(done.stderr or done.stdout).strip()[-200:]}")
    return done


CHECKERS = pytest.mark.parametrize("checker", [mypy, pyright])


@CHECKERS
def test_a_users_file_is_clean(tmp_path: Path, checker: object) -> None:
    """The example of the design, with everything a user writes."""
    assert callable(checker)
    done = checker(written(tmp_path, CLEAN))
    assert done.returncode == 0, done.stdout


@CHECKERS
def test_each_planted_mistake_is_reported(tmp_path: Path, checker: object) -> None:
    """What a type checker can see, nobody has to run to find out."""
    assert callable(checker)
    path = written(tmp_path, PLANTED)
    done = checker(path)
    assert reported(done.stdout, path) == planted(PLANTED), done.stdout

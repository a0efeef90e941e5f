"""Tasks whose runs a console is shown: one that ends, some that ask, one with a hostile text in every field.

Run as a program it fills a store with them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from milepost import Applied, Key, effect, spent, step, task
from milepost.errors import ApprovalNeeded, OutcomeUnknown, StepFailed
from milepost.stores.sqlite.store import SqliteStore

HOSTILE = (
    "<img src=x onerror=alert(1)></script><script>alert(2)</script> \u202eevil\u200b \x1b[31m ![x](http://x.invalid)"
)
"""Markup, a script, a right-to-left override, a zero-width space, a terminal escape, a markdown image."""


class Lost:
    """Which call is not answered: a number, or a negative one for the hostile run's; 0 for none."""

    number = 0


LOST = Lost()


def is_positive(output: int) -> bool:
    return output > 0


@step(verify=is_positive, next="Match the numbers.")
def read(source: Path) -> int:
    spent(input_tokens=1200, output_tokens=300, cost="0.0123", currency="USD")
    return len(source.read_text(encoding="utf-8"))


@step(verify=is_positive, next="Post what was matched.")
def match(number: int) -> int:
    return number + 1


@effect(key=lambda number: f"inv-{number}", next="Nothing is left to do.")
def post(key: Key, number: int) -> Applied[str]:
    if os.environ.get("DIE_AT") == str(number):
        os._exit(9)
    if number == LOST.number:
        raise ConnectionError("nobody answered")
    return Applied(f"posted {number}", ref=f"ref-{number}")


@task(model="small-1", permissions=["accounting:write"])
def tidy(source: Path, items: int = 5) -> int:
    """Read a file, match numbers, post two of them."""
    read(source)
    matched = match.map(range(items), concurrency=3)
    post.map([1, 2], concurrency=1)
    return sum(matched)


@step(next=HOSTILE.replace("\n", " "))
def shout(text: str) -> str:
    return text + HOSTILE


@effect(
    key=lambda text: "k-<script>alert(3)</script>", next="Nothing.", shadow=lambda text: Applied(HOSTILE, ref=HOSTILE)
)
def whisper(key: Key, text: str) -> Applied[str]:
    if LOST.number < 0:
        raise ConnectionError(HOSTILE)
    return Applied(HOSTILE, ref=HOSTILE)


@task(model="<script>alert(4)</script>")
def hostile(text: str) -> str:
    shout(text)
    whisper(text)
    return text


@effect(
    key=lambda to, amount: f"pay-{to}",
    approve="before",
    approvers=("finance", "ben@example"),
    approvals=2,
    summary="Pay {amount} to {to}",
    next="Nothing.",
)
def pay(key: Key, to: str, amount: int) -> str:
    return f"paid {amount} to {to}"


@effect(key=lambda to: f"mail-{to}", approve="before", next="Nothing.")
def mail(key: Key, to: str) -> None:
    return None


@task(model="small-1")
def settle(people: list[str]) -> int:
    pay(people[0], amount=7)
    return len(people)


@task(model="small-1")
def remind(people: list[str]) -> int:
    return len(mail.map(people))


@effect(key=lambda to, amount: f"refund-{to}", approve="before", next="Nothing.")
def refund(key: Key, to: str, amount: int) -> None:
    return None


@task(model="small-1")
def refunds(people: list[str]) -> int:
    refund(people[0], amount=100)
    return len(people)


@effect(key=lambda letter: "letter", approve="before", next="Nothing.")
def send_letter(key: Key, letter: Path) -> None:
    return None


@task(model="small-1")
def letters(letter: Path) -> None:
    send_letter(letter)


# ── filling a store ─────────────────────────────────────────────────────────────────────────────────


def fill(location: str) -> None:
    """Make the runs that the tests of the console look at, in any order.

    Nobody answers `asks-1`, `pays-3` and `clicks-4`.
    """
    store = SqliteStore(Path(location), create=True)
    source = Path("in.txt")
    source.write_text("some text\n", encoding="utf-8")
    tidy.options(store=store).run("done", source=source, items=12)
    LOST.number = 2
    for name in ("asks-1", "asks-2", "asks-3", "asks-4", "asks-5"):
        with suppress(StepFailed):
            tidy.options(store=store).run(name, source=source)
        with suppress(OutcomeUnknown):
            tidy.options(store=store).resume(name)
    LOST.number = -1
    with suppress(StepFailed):
        hostile.options(store=store).run("hostile", text=HOSTILE)
    with suppress(OutcomeUnknown):
        hostile.options(store=store).resume("hostile")
    hostile.options(store=store, shadow=True).run("hostile-shadow", text=HOSTILE)
    with suppress(ApprovalNeeded):
        remind.options(store=store, seal_key=b"a key that the console does not have").run("sealed", people=["Ana"])
    for name in ("pays-1", "pays-2", "pays-3", "pays-4"):
        with suppress(ApprovalNeeded):
            settle.options(store=store).run(name, people=["Ana"])
    for name in ("edits-1", "edits-2", "edits-3", "edits-4"):
        with suppress(ApprovalNeeded):
            refunds.options(store=store).run(name, people=["Ana"])
    with suppress(ApprovalNeeded):
        letters.options(store=store).run("edits-file", letter=source)
    for name in ("clicks-1", "clicks-2", "clicks-3", "clicks-4", "clicks-5"):
        with suppress(ApprovalNeeded):
            remind.options(store=store).run(name, people=["Ana & <b>Ben</b>"])
    for name, count in (("reminds", 4), ("edits-many", 2)):
        with suppress(ApprovalNeeded):
            remind.options(store=store).run(name, people=["a@x", "b@x", "c@x", "d@x"][:count])
    subprocess.run([sys.executable, __file__, location, "died"], env={**os.environ, "DIE_AT": "1"}, check=False)
    store.close()


def die(location: str, run_id: str) -> None:
    """Start a run that dies on its way."""
    tidy.options(store=SqliteStore(Path(location), create=True)).run(run_id, source=Path("in.txt"))


if __name__ == "__main__":
    fill(sys.argv[1]) if len(sys.argv) == 2 else die(*sys.argv[1:3])

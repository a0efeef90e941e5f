"""A task whose payments need approval; it keeps what was paid in a file. For tests of approvals in real processes.

Whatever an agent could try to allow its own payments is in here as well, chosen by `how`.
"""

from __future__ import annotations

import atexit
import json
import os
import shlex
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

from milepost import Declined, Found, Key, NotFound, effect, step, task
from milepost.errors import MilepostError

BOOK = Path("paid.txt")
TRIES = Path("tries.txt")


def find(key: Key, payee: str, amount: int) -> Found[str] | NotFound:
    lines = BOOK.read_text("utf-8").splitlines() if BOOK.exists() else []
    return Found(f"paid {payee}") if any(line.startswith(str(key)) for line in lines) else NotFound()


@effect(
    key=lambda payee, amount: payee,
    lookup=find,
    settle=timedelta(0),
    approve="before",
    approvals=int(os.environ.get("APPROVALS", "1")),
    approvers=os.environ["APPROVERS"].split() if "APPROVERS" in os.environ else None,
    summary="Pay {amount} EUR to {payee}",
    provider="bank",
    next="Tell the supplier.",
)
def pay(key: Key, payee: str, amount: int) -> str:
    """Pay somebody."""
    with BOOK.open("a", encoding="utf-8") as book:
        book.write(f"{key} {payee} {amount}\n")
    return f"paid {payee}"


@task
def payday(amount: int = 10) -> str:
    """Pay one supplier."""
    return pay("ada", amount)


@effect(key=lambda order: order, approve="before", provider="shop", next="Wait for the parcels.")
def order(key: Key, order: str) -> str:
    """Order one thing."""
    return f"ordered {order}"


@task
def shopping() -> list[str]:
    """Order three things at once."""
    try:
        return order.map(["tea", "gold", "salt"], concurrency=2)
    except Declined as declined:
        return [str(result) if isinstance(result, str) else "left out" for result in declined.results]


# ── what an agent may try ───────────────────────────────────────────────────────────────────────────


ANSWER = (sys.executable, "-m", "milepost", "answer", "--run", "earlier", "approve")


def by_command(environ: dict[str, str], *before: str) -> str:
    """Answer with the command line, from a child process."""
    done = subprocess.run([*before, *ANSWER], env=environ, capture_output=True, text=True, check=False)
    return done.stderr


def by_library() -> str:
    """Answer in this process, through the door of the library, as somebody else."""
    from milepost.api import default_store
    from milepost.records.identity import Identity
    from milepost.runtime.answering import answer_question

    store = default_store(create=False, environ=os.environ)
    (question,) = store.questions("earlier")
    at = "2026-11-02T08:00:00.000000+00:00"
    try:
        answer_question(store, question.question_id, "approve", by=Identity("boss@office"), seal_key=None, at=at)
    except MilepostError as error:
        return str(error)
    return "allowed"


ORPHANED = ("sh", "-c", 'setsid "$@" &', "sh")
"""Begins a command that is left behind at once: the shell that started it ends, and its output is still waited for."""


def later(how: str, bare: dict[str, str]) -> None:
    """Try when the run is over, in the process that worked on it or from a child of it."""

    def keep() -> None:
        told = by_library() if how == "library" else by_command(bare)
        TRIES.write_text(told, encoding="utf-8")

    atexit.register(keep)


@step
def try_to_allow(how: str) -> None:
    """Try to answer what an earlier run asked."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith("MILEPOST_RUN")}
    if how.startswith("at exit"):
        later(how.rpartition(" ")[2], bare)
        return
    ways = {
        "library": by_library,
        "command": lambda: by_command(dict(os.environ)),
        "bare command": lambda: by_command(bare),
        "left behind": lambda: by_command(bare, *ORPHANED),
    }
    if how == "thread":
        told: list[str] = []
        thread = threading.Thread(target=lambda: told.append(by_library()))
        thread.start()
        thread.join()
        said = told[0]
    elif how.startswith("below "):
        said = by_command(bare, *shlex.split(how.removeprefix("below ")))
    else:
        said = ways[how]()
    TRIES.write_text(said, encoding="utf-8")


@task
def scheming(how: str) -> None:
    """An agent that would like to allow its own payments."""
    try_to_allow(how)


@step
def settle_who_is_told(before: list[str]) -> None:
    """Write who is told of questions: somebody who answers them."""
    command = json.dumps([*before, "sh", "-c", '"$@" 2>tries.txt', "sh", *ANSWER])
    Path("milepost.toml").write_text(f"[notify]\ncommand = {command}\n", encoding="utf-8")


@task
def telling(before: list[str]) -> str:
    """An agent that sets who is told, then asks."""
    settle_who_is_told(before)
    return pay("ada", 10)

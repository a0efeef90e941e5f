"""Tasks with one mistake each, of the kind people make. A drill must name every one of them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

from drill_desk import Unanswered, found_at, ledger, post_to

from milepost import CannotTell, Found, Key, NotApplied, NotFound, Retry, StepFailed, effect, step, task

__all__ = ["ledger"]

# ── a write outside in a plain step: sent again when the process dies before the checkpoint ──


@step
def mail_all(words: list[str]) -> int:
    for word in words:
        post_to("neither", "mail", word)
    return len(words)


@task
def writes_in_a_step() -> int:
    return mail_all(["alpha", "beta"])


# ── chance between steps ──


@step
def draw(number: float) -> float:
    return number


@task
def draws_between_steps() -> bool:
    return draw(random.random()) < draw(2)


# ── a file nobody knows of ──


@step
def leave(word: str) -> str:
    Path(os.environ["DRILL_ELSEWHERE"], "left.txt").write_text(word, encoding="utf-8")
    return word


@task
def writes_elsewhere() -> str:
    return leave("alpha")


# ── a process nobody knows of ──


@step
def compute() -> int:
    return subprocess.run([sys.executable, "-c", ""], check=False).returncode


@task
def starts_a_process() -> int:
    return compute()


# ── a connection between steps ──


@task
def connects_between_steps() -> int:
    return len(ledger())


# ── a lookup that asks at the wrong place ──


def look_elsewhere(key: Key, word: str) -> Found[str] | NotFound:
    return found_at("looked-up", Key("another-key"))


@effect(lookup=look_elsewhere, settle=timedelta(0), retry=Retry(on=Unanswered))
def book(key: Key, word: str) -> str:
    return post_to("looked-up", key, word)


@task
def lookup_lies() -> str:
    return book("alpha")


# ── a provider that keeps no keys, declared as if it did ──


@effect(key_lifetime=timedelta(days=1), retry=Retry(on=Unanswered))
def order(key: Key, word: str) -> str:
    return post_to("neither", key, word)


@task
def believes_in_keys() -> str:
    return order("alpha")


# ── what is in no output is gone after a crash ──

SEEN: list[str] = []


@step
def note(word: str) -> str:
    SEEN.append(word)
    return word


@task
def keeps_it_in_memory() -> list[str]:
    SEEN.clear()
    note("alpha")
    note("beta")
    return SEEN


# ── a rate limit taken for an answer ──


def cannot_ask(key: Key, word: str) -> CannotTell:
    return CannotTell("there is nobody to ask")


@effect(
    lookup=cannot_ask, settle=timedelta(0), rejected=NotApplied, retry=Retry(on=NotApplied, attempts=1, then="raise")
)
def notify(key: Key, word: str) -> str:
    return post_to("neither", key, word)


@task
def gives_up_at_once() -> str:
    try:
        return notify("alpha")
    except StepFailed:
        return "not notified"


# ── what surrounds the task ──


def setup_fails() -> None:
    raise RuntimeError("no world today")


def teardown_fails() -> None:
    raise RuntimeError("the lights stay on")


def cannot_see() -> None:
    raise RuntimeError("no ledger today")


@step
def wait_for_nobody() -> int:
    if "MILEPOST_CRASH_AT" in os.environ:  # not in the undisturbed runs
        threading.Event().wait()
    return 1


@task
def hangs_when_drilled() -> int:
    return wait_for_nobody()


# ── nothing a drill can compare with ──


@task
def always_fails() -> int:
    raise ValueError("no such month")

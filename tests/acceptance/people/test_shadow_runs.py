"""Shadow runs as people start them, beside a provider that is a process of its own: nothing ever reaches it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from milepost.drill import provider

PLAN = """
import json, os, sys, urllib.request
from milepost import Key, effect, step, task

PROVIDER = os.environ["PROVIDER"]


def post(key, body):
    request = urllib.request.Request(PROVIDER + "/neither", data=body.encode(), headers={"Idempotency-Key": str(key)})
    return urllib.request.urlopen(request).read().decode()


@effect(provider="accounting", key=lambda number: number, shadow=lambda number: f"would-be {number}")
def book(key: Key, number: str) -> str:
    return post(key, json.dumps({"number": number}))


@step
def numbers() -> list[str]:
    return ["INV-1", "INV-2", "INV-3"]


@step
def sneaky(number: str) -> str:
    try:
        return post("mp1-sneaky", json.dumps({"number": number}))
    except Exception as error:
        return f"went on: {error}"


@task
def month() -> list[str]:
    return [book(number) for number in numbers()]


@task
def leaky() -> str:
    return sneaky("INV-1")
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Return where the provider notes every request it gets, and its address."""
    folder = tmp_path_factory.mktemp("provider")
    (folder / "worlds").mkdir()
    with provider.running(folder / "ledger.sqlite", folder / "worlds") as address:
        yield folder / "ledger.requests", address


def milepost(folder: Path, address: str, *words: str, status: int = 0, **more: str) -> Any:
    """Type a command; return its JSON."""
    (folder / "plan.py").write_text(PLAN)
    environ = {**os.environ, "PROVIDER": f"{address}/w", **more}
    command = [sys.executable, "-m", "milepost", *words, "--json"]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout) if done.stdout else None


def test_a_shadow_run_that_is_killed_goes_on_as_one_and_nothing_arrives(
    tmp_path: Path, world: tuple[Path, str]
) -> None:
    """SIGKILL behind the second record, in a real process; the provider never hears of anything."""
    requests, address = world
    at = {"MILEPOST_CRASH_AT": "append:effect_shadowed done 2"}
    milepost(tmp_path, address, "run", "plan.py:month", "--shadow", "--run-id", "dry", status=-signal.SIGKILL, **at)
    refused = milepost(tmp_path, address, "run", "plan.py:month", "--run-id", "dry", status=3)
    assert refused["error"]["code"] == "shadow-differs"
    done = milepost(tmp_path, address, "resume", "dry")
    assert (done["result"], done["shadow"]) == ([f"would-be INV-{n}" for n in (1, 2, 3)], True)
    told = milepost(tmp_path, address, "shadow", "report", "dry")
    assert [line["would"] for line in told["lines"]] == [{"number": f"INV-{n}"} for n in (1, 2, 3)]
    (tmp_path / "done.csv").write_text("number,amount\nINV-1,1\n")
    told = milepost(tmp_path, address, "shadow", "report", "dry", "--against", "done.csv", "--on", "number")
    assert (told["counts"]["agreed"], told["counts"]["extra"], told["fields_only_there"]) == (1, 2, ["amount"])
    assert requests.read_text() == ""


def test_a_step_that_posts_past_its_effects_is_named_with_its_line(tmp_path: Path, world: tuple[Path, str]) -> None:
    """It swallows the refusal, and the run does not come through all the same."""
    requests, address = world
    told = milepost(tmp_path, address, "run", "plan.py:leaky", "--shadow", "--run-id", "leak", status=2)
    error = told["error"]
    assert error["code"] == "undeclared-write"
    line = next(n for n, text in enumerate(PLAN.splitlines(), 1) if "urlopen" in text)
    assert error["facts"]["line"].endswith(f"plan.py:{line}")
    assert error["facts"]["who"] == "sneaky"
    assert requests.read_text() == ""

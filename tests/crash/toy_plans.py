"""Two small plans with everything that has a crash point, as `def` and as `async def`; and how a process starts one.

Everything a body does to the outside goes to the test provider; how its effects are declared follows from the
provider's character.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from clock import SharedClock
from toy_orders import RUN_ID, OrderedClock, arm_freezing, began, wait_until_recorded
from toy_provider import LATE_S, MEMORY_S, Character

from milepost import (
    Applied,
    CannotTell,
    Found,
    Key,
    Limits,
    MilepostError,
    NotApplied,
    NotFound,
    Rate,
    Retry,
    StepFailed,
    current_run,
    effect,
    heartbeat,
    sleep,
    spent,
    step,
    task,
)
from milepost.errors import PermissionMissing
from milepost.stores.sqlite.store import SqliteStore

ANSWER_S = 60
"""Seconds a client waits for the provider; nothing in these tests comes near it."""


@dataclass(frozen=True)
class Receipt:
    ref: str
    word: str


@dataclass(frozen=True)
class Report:
    words: list[str]
    size: int
    file: Path
    receipts: list[Receipt]


class Flaky(Exception):
    """Fails the first time."""


class Busy(NotApplied):
    """The provider said 429: nothing happened."""

    def __init__(self, retry_after: float) -> None:
        super().__init__("429")
        self.retry_after = retry_after


# ── the outside ──


def ask_provider(method: str, key: Key, body: str | None = None) -> tuple[int, Any]:
    """Talk to the provider. Raises: ConnectionError when it hangs up without an answer."""
    character, world = os.environ["TOY_CHARACTER"], os.environ["TOY_WORLD"]
    connection = http.client.HTTPConnection("127.0.0.1", int(os.environ["TOY_PORT"]), timeout=ANSWER_S)
    headers = {"At": str(SharedClock(Path("clock")).ticks())}
    try:
        connection.request(method, f"/{character}/{world}/{key}", body, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def deliver(key: Key, word: str) -> Applied[Receipt]:
    status, answer = ask_provider("POST", key, json.dumps({"word": word, "busy": word == "beta"}))
    if status == 429:
        raise Busy(answer["retry_after"])
    receipt = Receipt(**answer)
    return Applied(receipt, ref=receipt.ref)


def find(key: Key, word: str) -> Found[Receipt] | NotFound | CannotTell:
    status, answer = ask_provider("GET", key)
    return Found(Receipt(**answer), ref=answer["ref"]) if status == 200 else NotFound()


def dealings(character: str) -> dict[str, Any]:
    """Return how an effect is declared for a provider of this character."""
    retry = Retry(on=(Busy, ConnectionError), attempts=9, first_wait=timedelta(seconds=1))
    options: dict[str, dict[str, Any]] = {
        Character.HONOURS_KEYS: {"key_lifetime": timedelta(days=1)},
        Character.LOOKED_UP: {"lookup": find, "settle": timedelta(0)},
        Character.NEITHER: {},
        Character.NEVER_ANSWERS: {"lookup": find, "settle": timedelta(0)},
        Character.FORGETS_KEYS: {"key_lifetime": timedelta(seconds=MEMORY_S)},
        Character.LOOKS_UP_LATE: {"lookup": find, "settle": timedelta(seconds=LATE_S)},
    }
    return {"retry": retry, "provider": "toy", **options[Character(character)]}


# ── what the bodies do ──


def grown(words: list[str]) -> str:
    """Too large for a row: kept as a file of the store."""
    return " ".join(words) * 8000


def written(words: list[str]) -> Path:
    began("write")
    path = Path("words.txt")
    path.write_text("\n".join(words), encoding="utf-8")
    return path


def flaked(words: list[str]) -> int:
    if not Path("flaked").exists():
        Path("flaked").touch()
        raise Flaky("the first time")
    return len(words)


def has_words(output: list[str]) -> bool:
    if os.environ.get("TOY_DIE_IN") == "has_words":
        wait_until_recorded("output_recorded")
    began("has_words")
    return all(output)


FLAKY = Retry(on=Flaky, attempts=9, first_wait=timedelta(seconds=2))
HOPELESS = Retry(on=Flaky, attempts=9, deadline=timedelta(0), then="raise")


def plan(character: str) -> Any:
    """Build the synchronous plan."""
    send = dealings(character)

    @step(next="Split the text.")
    def read(path: Path) -> str:
        began("read")
        return path.read_text(encoding="utf-8")

    @step(verify=has_words)
    def split(text: str) -> list[str]:
        began("split")
        return text.split()

    @step
    def inner(word: str) -> str:
        began(f"inner {word}")
        return word.upper()

    @effect(**send)
    def announce(key: Key, word: str) -> Applied[Receipt]:
        return deliver(key, word)

    @step
    def outer(words: list[str]) -> list[str]:
        began("outer")
        first = inner(words[0])
        heartbeat(1, 2, cursor=first)
        announced = announce(first)
        return [first, announced.word, inner(words[1])]

    @step
    def grow(words: list[str]) -> str:
        began("grow")
        return grown(words)

    @step(retry=FLAKY, version=os.environ.get("TOY_VERSION"))
    def flake(words: list[str]) -> int:
        began("flake")
        return flaked(words)

    @step(retry=HOPELESS)
    def hope() -> int:
        began("hope")
        raise Flaky("for good")

    @effect(key=lambda word: word, next="Register.", **send)
    def post(key: Key, word: str) -> Applied[Receipt]:
        return deliver(key, word)

    @effect(key=lambda word: word, scope="task", **send)
    def register(key: Key, word: str) -> Applied[Receipt]:
        return deliver(key, word)

    @task(name="toy")
    def toy(path: Path) -> Report:
        words = split(read(path))
        outer(words)
        size = len(grow(words)) + flake(words)
        try:
            size += hope()
        except StepFailed:
            size += 1
        sleep(timedelta(minutes=1), name="nap")
        file = current_run().step("write", written)(words)
        return Report(words, size, file, [*post.map(words), register("gamma")])

    return toy


def async_plan(character: str) -> Any:
    """Build the asynchronous plan."""
    send = dealings(character)

    @step(next="Split the text.")
    async def read(path: Path) -> str:
        began("read")
        return path.read_text(encoding="utf-8")

    @step(verify=has_words)
    async def split(text: str) -> list[str]:
        began("split")
        return text.split()

    @step
    async def inner(word: str) -> str:
        began(f"inner {word}")
        return word.upper()

    @effect(**send)
    async def announce(key: Key, word: str) -> Applied[Receipt]:
        return deliver(key, word)

    @step
    async def outer(words: list[str]) -> list[str]:
        began("outer")
        first, second = await asyncio.gather(inner(words[0]), inner(words[1]))
        heartbeat(1, 2, cursor=first)
        announced = await announce(first)
        return [first, announced.word, second]

    @step
    def grow(words: list[str]) -> str:
        began("grow")
        return grown(words)

    @step(retry=FLAKY, version=os.environ.get("TOY_VERSION"))
    async def flake(words: list[str]) -> int:
        began("flake")
        return flaked(words)

    @step(retry=HOPELESS)
    async def hope() -> int:
        began("hope")
        raise Flaky("for good")

    @effect(key=lambda word: word, next="Register.", **send)
    async def post(key: Key, word: str) -> Applied[Receipt]:
        return deliver(key, word)

    @effect(key=lambda word: word, scope="task", **send)
    def register(key: Key, word: str) -> Applied[Receipt]:
        return deliver(key, word)

    @task(name="toy")
    async def toy(path: Path) -> Report:
        words = await split(await read(path))
        await outer(words)
        size = len(await grow.aio(words)) + await flake(words)
        try:
            size += await hope()
        except StepFailed:
            size += 1
        await sleep.aio(timedelta(minutes=1), name="nap")
        file = await current_run().step("write", written).aio(words)
        posted = await post.map(words, concurrency=2)
        return Report(words, size, file, [*posted, await register.aio("gamma")])

    return toy


def asked_plan(character: str) -> Any:
    """Build a plan in which people allow what is done, sends keep to a rate, and one is not permitted at all."""

    @step(approve="before", review="after")
    def read(path: Path) -> list[str]:
        began("read")
        spent(input_tokens=120)
        return path.read_text(encoding="utf-8").split()

    @effect(key=lambda word: word, approve="before", **dealings(character))
    def post(key: Key, word: str) -> Applied[Receipt]:
        return deliver(key, word)

    @effect(permission="mail:send", **dealings(character))
    def mail(key: Key, word: str) -> Applied[Receipt]:
        return deliver(key, word)

    @task(name="toy", limits=Limits(sends=Rate(1, timedelta(seconds=5))))
    def asked(path: Path) -> Report:
        words = read(path)
        receipts = post.map(words)
        with suppress(PermissionMissing):
            mail("delta")
        return Report(words, len(words), path, receipts)

    return asked


def shadowed_plan(character: str) -> Any:
    """Build a plan for a shadow run: nothing of it reaches the provider."""

    @step
    def read(path: Path) -> list[str]:
        return path.read_text(encoding="utf-8").split()

    @effect(key=lambda word: word, shadow=lambda word: Receipt("shadow", word), **dealings(character))
    def post(key: Key, word: str) -> Applied[Receipt]:
        return deliver(key, word)

    @task(name="toy")
    def shadowed(path: Path) -> Report:
        words = read(path)
        return Report(words, len(words), path, post.map(words))

    return shadowed.options(shadow=True)


# ── a start ──

PLANS: Mapping[str, Callable[[str], Any]] = {
    "sync": plan,
    "async": async_plan,
    "asked": asked_plan,
    "shadowed": shadowed_plan,
}


def start(flavour: str, run_id: str = RUN_ID) -> int:
    """Start or resume the run in the working folder; leave how it ended in `told`, return the exit status."""
    declared = PLANS[flavour](os.environ["TOY_CHARACTER"])
    arm_freezing()
    store = SqliteStore(Path("store.sqlite"), create=True)
    told: dict[str, Any]
    status = 0
    try:
        options = {
            "store": store,
            "clock": OrderedClock(Path("clock")),
            "lease_s": float(os.environ.get("TOY_LEASE_S", 30)),
        }
        going = declared.options(**options).run(run_id, path=Path("input.txt"))
        report = asyncio.run(going) if asyncio.iscoroutine(going) else going
        told = {"report": json.loads(json.dumps(asdict(report), default=str))}
    except MilepostError as error:
        told, status = {"code": error.code, "message": str(error)}, error.exit_status
    finally:
        store.close()
    Path(os.environ.get("TOY_TOLD", "told")).write_text(json.dumps(told), encoding="utf-8")
    return status

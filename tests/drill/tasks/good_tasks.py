"""Tasks as they should be: everything written outside is an effect, everything else is in a step's output."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from drill_desk import Unanswered, found_at, ledger, post_to

from milepost import Applied, Found, Key, NotFound, Retry, Sql, effect, spent, step, task

__all__ = ["ledger"]


@step
def read(source: Path) -> list[str]:
    spent(input_tokens=120, output_tokens=7)
    return source.read_text(encoding="utf-8").split()


@step
def write(words: list[str]) -> Path:
    path = Path("words.txt")
    path.write_text("\n".join(words), encoding="utf-8")
    return path


def find(key: Key, word: str) -> Found[str] | NotFound:
    return found_at("looks-up-late", key)


@effect(key=lambda word: word, lookup=find, settle=timedelta(seconds=30), retry=Retry(on=Unanswered))
def post(key: Key, word: str) -> Applied[str]:
    ref = post_to("looks-up-late", key, word)
    return Applied(ref, ref=ref)


@effect(key_lifetime=timedelta(hours=24), retry=Retry(on=Unanswered))
async def announce(key: Key, count: int) -> str:
    return post_to("honours-keys", key, f"{count} words")


@effect()
def tell(key: Key, count: int) -> str:
    return post_to("neither", key, f"told {count}")


@task
def small(source: Path = Path("input.txt")) -> list[str]:
    words = read(source)
    write(words)
    return post.map(words)


@task
async def asynchronous(source: Path = Path("input.txt")) -> list[str]:
    words = await read.aio(source)
    return [await announce(len(words)), *await post_each(words)]


async def post_each(words: list[str]) -> list[str]:
    return [await post.aio(word) for word in words]


@task
def in_doubt(source: Path = Path("input.txt")) -> str:
    """Its provider knows neither keys nor lookups: after a kill in the gap only a person can know."""
    return tell(len(read(source)))


@contextmanager
def desk_of_words() -> Iterator[dict[str, str]]:
    """Set a world up: its input, and a mark that is there while the world is."""
    Path("input.txt").write_text("alpha beta", encoding="utf-8")
    Path("open").touch()
    yield {"DESK": str(Path("open").resolve())}
    Path("open").unlink()


@task(shadow_first=3)  # in its own world a drill needs no promotion
def needs_setup() -> bool:
    return is_open()


@step
def is_open() -> bool:
    return Path(os.environ["DESK"]).exists()


@dataclass(frozen=True)
class Stamp:
    word: str
    at: int


@step
def stamp(word: str) -> Stamp:
    """Say something else each time, as a model does."""
    return Stamp(word, time.time_ns())


@task
def restless() -> Stamp:
    return stamp("alpha")


@step(sources=[Sql(os.environ.get("DRILL_ORDERS", "orders.sqlite"), "select 1")])
def look_up_orders() -> int:
    with closing(sqlite3.connect(f"file:{os.environ['DRILL_ORDERS']}?mode=ro", uri=True)) as db:
        return int(db.execute("select 1").fetchone()[0])


@task
def reads_elsewhere() -> int:
    """Looks at a database outside its world; so does Milepost, for it is a declared source."""
    return look_up_orders()


@effect(key=lambda word: word, lookup=find, settle=timedelta(seconds=30), approve="before", approvals=2)
def pay(key: Key, word: str) -> Applied[str]:
    ref = post_to("looks-up-late", key, word)
    return Applied(ref, ref=ref)


@step(review="after")
def weigh(words: list[str]) -> int:
    return len(words)


@task
def approved(source: Path = Path("input.txt")) -> list[str]:
    """People approve each payment, two each, and look at what was weighed."""
    words = read(source)
    weigh(words)
    return pay.map(words)

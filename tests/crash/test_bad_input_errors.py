"""Exceptions that would break a careless recorder: their text raises, is huge, is no text, or holds a secret."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from milepost import CannotTell, Key, Retry, Secret, effect, heartbeat, step, task
from milepost.errors import MilepostError, OutcomeUnknown, StepFailed
from milepost.records.model import RECORD_SIZE_MAX
from milepost.runtime.verify import verify_run
from milepost.stores.sqlite.store import SqliteStore

CANARY = 'c4n4ry/with "quotes" & ünïcode'


class TextRaises(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError("the text of an error has an error")


class TextExits(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class TextIsNone(Exception):
    def __str__(self) -> str:
        return None  # type: ignore[return-value]


class TextNeverEnds(Exception):
    def __str__(self) -> str:
        return str(self)


class Unpicklable(Exception):
    def __init__(self) -> None:
        super().__init__("holds a lock")
        self.lock = threading.Lock()

    def __reduce__(self) -> Any:
        raise TypeError("cannot be pickled")


class NeedsArguments(Exception):
    """One that no unpickler could build again."""

    def __init__(self, *, code: int, host: str) -> None:
        super().__init__(f"{code} from {host}")


def gone_class() -> Exception:
    """An exception whose class exists only here, as after an edit."""
    return type("GoneAfterTheEdit", (Exception,), {"__module__": "deleted.module"})("was here")


def in_a_circle() -> Exception:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    return first


ERRORS: dict[str, Callable[[], Exception]] = {
    "text raises": TextRaises,
    "text exits": TextExits,
    "text is none": TextIsNone,
    "text never ends": TextNeverEnds,
    "50 MB": lambda: ValueError("x" * 50_000_000),
    "50 MB of four-byte characters": lambda: ValueError("\U0001f600" * 12_500_000),
    "unpicklable": Unpicklable,
    "needs arguments": lambda: NeedsArguments(code=500, host="example"),
    "class gone": gone_class,
    "lone surrogate": lambda: ValueError("half \ud800 a character"),
    "escapes": lambda: ValueError("\x1b]0;title\x07\x1b[2J\0"),
    "long name": lambda: type("N" * 100_000, (Exception,), {})("x"),
    "circle": in_a_circle,
    "no arguments": lambda: Exception(),
    "group": lambda: ExceptionGroup("many", [ValueError("x" * 1000)] * 1000),
}

raising: list[Callable[[], Exception]] = []
sent: list[str] = []


def trouble() -> None:
    if raising:
        raise raising[0]()


@step
def work() -> str:
    trouble()
    return "worked"


@effect(provider="box", retry=Retry(on=Exception, attempts=1, then="ask"))
def send(key: Key) -> str:
    sent.append(str(key))
    trouble()
    return "sent"


def refuse(output: str) -> None:
    trouble()


@step(verify=refuse)
def checked() -> str:
    return "checked"


@task
def in_step() -> str:
    return work()


@task
def in_plan() -> str:
    trouble()
    return "planned"


@task
def in_verifier() -> str:
    return checked()


@task
def in_effect() -> str:
    return send()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    raising.clear()
    sent.clear()
    with closing(SqliteStore(tmp_path / "store.sqlite", create=True)) as store:
        yield store


def assert_small_and_sound(store: SqliteStore, run_id: str) -> None:
    """Whatever was raised, the journal holds data a reader can take in, and every seal."""
    for record in store.records(run_id):
        assert len(record.body) <= RECORD_SIZE_MAX
        record.body.decode("utf-8")
    row = store.run(run_id)
    assert row is not None
    assert len(row.progress.detail) <= 300
    assert all(verdict.ok for verdict in verify_run(store, run_id, None, {}))


@pytest.mark.parametrize("plan", [in_step, in_plan, in_verifier], ids=lambda plan: plan.spec.name)
@pytest.mark.parametrize("make", ERRORS.values(), ids=ERRORS.keys())
def test_any_exception_is_recorded_small_and_the_run_goes_on_later(
    store: SqliteStore, plan: Any, make: Callable[[], Exception]
) -> None:
    raising.append(make)
    with pytest.raises(StepFailed) as failed:
        plan.options(store=store).run("r")
    assert len(str(failed.value)) < 5000
    assert failed.value.exit_status == 1
    assert_small_and_sound(store, "r")
    raising.clear()
    assert plan.options(store=store).resume("r") in ("worked", "planned", "checked")
    assert_small_and_sound(store, "r")


@pytest.mark.parametrize("make", ERRORS.values(), ids=ERRORS.keys())
def test_any_exception_of_an_effect_leaves_it_unknown_and_asked_about(
    store: SqliteStore, make: Callable[[], Exception]
) -> None:
    """The question shows the error too, so it must stay one a person can read."""
    raising.append(make)
    with pytest.raises(MilepostError):
        in_effect.options(store=store).run("r")
    raising.clear()
    with pytest.raises(OutcomeUnknown) as asked:
        in_effect.options(store=store).resume("r")
    assert len(str(asked.value)) < 5000
    assert len(sent) == 1, "never sent again on a guess"
    assert_small_and_sound(store, "r")


def test_a_lookup_that_says_50_mb_is_cut(store: SqliteStore) -> None:
    @effect(provider="box", lookup=lambda key: CannotTell("x" * 50_000_000), settle=timedelta(0))
    def doubtful(key: Key) -> str:
        raise TimeoutError

    @task
    def doubting() -> str:
        return doubtful()

    with pytest.raises(MilepostError):
        doubting.options(store=store).run("r")
    with pytest.raises(OutcomeUnknown) as asked:
        doubting.options(store=store).resume("r")
    assert len(str(asked.value)) < 5000
    assert_small_and_sound(store, "r")


def test_a_verifier_that_says_50_mb_is_cut(store: SqliteStore) -> None:
    @step(verify=lambda output: "x" * 50_000_000)
    def verbose() -> str:
        return "v"

    @task
    def asking() -> str:
        return verbose()

    with pytest.raises(StepFailed) as failed:
        asking.options(store=store).run("r")
    assert len(str(failed.value)) < 5000
    assert_small_and_sound(store, "r")


# ── secrets ──


@step
def log_in(user: str, login: dict[str, Secret]) -> str:
    value = login["password"].read()
    heartbeat(1, note=f"logging in with {value}")
    leak_to(0, value)
    return "in"


def tell(key: Key, token: Secret) -> CannotTell:
    return CannotTell(f"the provider answers 403 to {token.read()}")


@effect(provider="box", lookup=tell, settle=timedelta(0))
def post(key: Key, token: Secret) -> str:
    leak_to(1, token.read())
    return "posted"


leaks: list[Callable[[str], Exception] | None] = [None, None]
"""What the step and what the effect raises."""


def leak_to(place: int, value: str) -> None:
    leak = leaks[place]
    if leak is not None:
        raise leak(value)


@task
def logging_in(user: str, token: Secret) -> str:
    log_in(user, {"password": token})
    return post(token)


def quoted(value: str) -> Exception:
    from urllib.parse import quote

    return ConnectionError(f"https://ada:{quote(value, safe='')}@example.com/?t={quote(value)}")


def as_json(value: str) -> Exception:
    import json

    return ValueError(json.dumps({"sent": {"auth": [value]}}))


def chained(value: str) -> Exception:
    error = ValueError("outer")
    error.__cause__ = ValueError(value)
    error.add_note(value)
    return error


def nested(value: str) -> Exception:
    return ExceptionGroup(f"with {value}", [ValueError(value)])


LEAKS = [ValueError, quoted, as_json, chained, nested, lambda value: ValueError("x" * 1990 + value)]


@pytest.mark.parametrize("leak", LEAKS, ids=["text", "url", "json", "cause", "group", "at the cut"])
def test_a_secret_is_in_no_file_whatever_says_it(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leak: Callable[[str], Exception]
) -> None:
    """SEC-9: argument, nested argument, environment, note, error, lookup, question; database, WAL, artifacts."""
    monkeypatch.setenv("LOGIN", CANARY)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    plan = logging_in.options(store=store)
    said = []
    for leaks[:], family in (([leak, None], StepFailed), ([None, leak], StepFailed), ([None, None], OutcomeUnknown)):
        with pytest.raises(family) as failed:
            plan.run("r", "ada", Secret("LOGIN"))
        said.append(str(failed.value))
    assert "c4n4ry" not in "".join(said)
    store.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(b"LOGIN" in path.read_bytes() for path in files), "the control: its name is recorded"
    assert [path.name for path in files if b"c4n4ry" in path.read_bytes()] == []

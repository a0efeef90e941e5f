"""Names from outside: run ids, step names and keys that are too long, hostile, equal only after NFC, or given twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from milepost import Key, effect, step, task
from milepost.errors import AmbiguousTask, BadName, DuplicateStep, MisuseError, NotEncodable, RunUnknown
from milepost.protocol.keys import NAME_LENGTH_MAX
from milepost.runtime.verify import verify_run
from milepost.stores.sqlite.store import SqliteStore

NFC, NFD = "M\u00fcller", "Mu\u0308ller"
HOSTILE = [
    "",
    "x" * 300,
    "two\nlines",
    "carriage\rreturn",
    "nul\0byte",
    "tab\tbed",
    "\x1b[31mred",
    "../../etc/passwd",
    "-rf",
    "--help",
    ".hidden",
    "~root",
    " blank",
    "blank ",
    "right\u202eleft",
    "zero\u200bwidth",
    "\ufeffmark",
    "half\ud800",
    "para\u2029graph",
    "private\ue000",
]

keys: list[str] = []
sent: list[str] = []


@step(key=lambda item: item)
def keyed(item: str) -> str:
    return item


@effect(key=lambda item: item, provider="box")
def put(key: Key, item: str) -> str:
    sent.append(str(key))
    return item


@task
def each() -> list[str]:
    return [keyed(item) for item in keys]


@task
def put_each() -> list[str]:
    return [put(item) for item in keys]


@task
def nothing() -> str:
    return "done"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    keys.clear()
    sent.clear()
    with closing(SqliteStore(tmp_path / "stores" / "store.sqlite", create=True)) as store:
        yield store


def ready(plan: Any, store: SqliteStore) -> Any:
    return plan.options(store=store)


def accepts(problem: MisuseError) -> bool:
    """A message names the rule, never the hostile text as it is."""
    text = str(problem)
    return len(text) < 500 and text.isprintable() and problem.exit_status == 2 and bool(problem.hint)


@pytest.mark.parametrize("run_id", HOSTILE, ids=ascii)
def test_a_hostile_run_id_is_refused_before_there_is_a_run(store: SqliteStore, run_id: str) -> None:
    for start in (ready(nothing, store).run, ready(nothing, store).resume):
        with pytest.raises(BadName) as refused:
            start(run_id)
        assert accepts(refused.value)
    assert store.runs() == []


@pytest.mark.parametrize("run_id", [7, None, b"bytes", ["list"], 1.5])
def test_a_run_id_of_another_class_is_refused(store: SqliteStore, run_id: Any) -> None:
    with pytest.raises(BadName, match="expected str"):
        ready(nothing, store).run(run_id)
    assert store.runs() == []


@pytest.mark.parametrize(
    "run_id",
    ["a/../../../b", "con:nul", "'; DROP TABLE runs; --", "%2e%2e%2f", "a\\..\\b", "2026-10 März №7", "x" * 200],
)
def test_an_odd_run_id_is_a_name_and_never_a_path(store: SqliteStore, tmp_path: Path, run_id: str) -> None:
    assert ready(nothing, store).run(run_id) == "done"
    assert ready(nothing, store).resume(run_id) == "done"
    assert [row.run_id for row in store.runs()] == [run_id]
    assert all(verdict.ok for verdict in verify_run(store, run_id, None, {}))
    assert [entry.name for entry in tmp_path.iterdir()] == ["stores"]
    assert {entry.name.partition(".sqlite")[0] for entry in (tmp_path / "stores").iterdir()} == {"store"}


def test_a_run_id_is_one_name_however_it_is_composed(store: SqliteStore) -> None:
    """A Mac types it one way, a Linux terminal the other."""
    assert ready(nothing, store).run(NFD) == "done"
    assert ready(nothing, store).run(NFC) == "done"
    assert ready(nothing, store).resume(NFD) == "done"
    assert [row.run_id for row in store.runs()] == [NFC]


def test_case_and_look_alikes_are_other_names(store: SqliteStore) -> None:
    ready(nothing, store).run("april")
    for other in ("April", "аpril", "april2", "apri"):
        with pytest.raises(RunUnknown):
            ready(nothing, store).resume(other)


@pytest.mark.parametrize("name", [*HOSTILE, "a/b", "a[b]", "a#2", "x" * (NAME_LENGTH_MAX + 1)], ids=ascii)
def test_a_hostile_name_is_refused_where_it_is_declared(name: str) -> None:
    def body() -> int:
        return 1

    def send(key: Key) -> int:
        return 1

    for declare in (lambda: step(name=name)(body), lambda: effect(name=name)(send), lambda: task(name=name)(body)):
        if name == "":  # an empty name= means: the function's own
            continue
        with pytest.raises(BadName) as refused:
            declare()
        assert accepts(refused.value)


@pytest.mark.parametrize("name", [n for n in HOSTILE if n], ids=ascii)
def test_a_hostile_key_is_refused_before_anything_starts(store: SqliteStore, name: str) -> None:
    keys.append(name)
    for plan in (each, put_each):
        with pytest.raises((BadName, NotEncodable)) as refused:
            ready(plan, store).run(plan.spec.name)
        assert accepts(refused.value)
    assert sent == []
    assert not any(record.kind in ("step_started", "intent_recorded") for record in store.records("put_each"))


def test_an_empty_key_is_refused(store: SqliteStore) -> None:
    keys.append("")
    with pytest.raises(BadName, match="empty"):
        ready(put_each, store).run("r")
    assert sent == []


@pytest.mark.parametrize("twice", [["INV-7", "INV-7"], [NFC, NFD]], ids=["equal", "equal in NFC"])
def test_a_key_given_twice_is_refused_before_the_second_is_sent(store: SqliteStore, twice: list[str]) -> None:
    keys.extend(twice)
    with pytest.raises(DuplicateStep, match=r"put\[.*\]"):
        ready(put_each, store).run("r")
    assert len(sent) == 1
    with pytest.raises(DuplicateStep):
        ready(put_each, store).resume("r")
    assert len(sent) == 1
    keys[1:] = ["INV-8"]
    assert ready(put_each, store).resume("r") == keys
    assert len(sent) == 2


def test_keys_that_only_look_like_paths_or_numbers_stay_apart(store: SqliteStore) -> None:
    """A key stands in brackets in a path; no other name can be made to look like it."""
    keys.extend(["a", "a]", "a]#2", "[a", "a/b", "a][b", "#2", "1", "01"])
    assert ready(put_each, store).run("r") == keys
    assert len(set(sent)) == len(keys)
    assert ready(put_each, store).run("r") == keys
    assert len(sent) == len(keys)


def test_two_tasks_of_one_name_are_refused(tmp_path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resume could not tell which of them a run belongs to."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for module in ("here", "there"):
        text = f"from milepost import task\n\n\n@task(name='namesake')\ndef {module}() -> str:\n    return '{module}'\n"
        (tmp_path / f"namesakes_{module}.py").write_text(text, encoding="utf-8")
    import namesakes_here

    assert ready(namesakes_here.here, store).run("first") == "here"
    import namesakes_there

    for plan in (namesakes_here.here, namesakes_there.there):
        with pytest.raises(AmbiguousTask, match=r"namesakes_here.*namesakes_there|namesakes_there.*namesakes_here"):
            ready(plan, store).run("second")
    assert store.run("second") is None

"""Absurd values through the door of a run, and nothing in the source that could build objects from what is stored."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import milepost
from milepost import Key, effect, step, task
from milepost.errors import NotEncodable, StepFailed
from milepost.records.canonical import DEPTH_MAX
from milepost.runtime.verify import verify_run
from milepost.stores.sqlite.store import SqliteStore

SOURCE = Path(milepost.__file__).parent
BUILDERS = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle", "yaml", "msgpack", "copyreg"}
"""Modules whose loading runs what is loaded (SEC-1)."""


def deep() -> Any:
    found: Any = []
    for _ in range(100_000):
        found = [found]
    return found


def circle() -> Any:
    found: list[Any] = []
    found.append(found)
    return found


def wide_circle() -> Any:
    found: dict[str, Any] = {}
    found.update({str(n): found for n in range(50)})
    return found


class Hostile(dict[str, Any]):
    def __iter__(self) -> Any:
        raise SystemError("iterated")


ABSURD: dict[str, Callable[[], Any]] = {
    "deep": deep,
    "circle": circle,
    "wide circle": wide_circle,
    "one too deep": lambda: _nested(DEPTH_MAX + 1),
    "huge int": lambda: 10**10_000,
    "nan": lambda: float("nan"),
    "infinity": lambda: [float("-inf")],
    "surrogate": lambda: {"k": "\ud800"},
    "surrogate key": lambda: {"\udfff": 1},
    "int keys": lambda: {1: "a", "1": "b"},
    "generator": lambda: (n for n in range(3)),
    "endless": lambda: iter(int, 1),
    "object": object,
    "class": lambda: Hostile,
    "function": lambda: deep,
    "subclass": lambda: Hostile(a=1),
    "module": lambda: sys,
    "complex": lambda: 1j,
    "tuple": lambda: (1, 2),
    "set": lambda: {1, 2},
    "bytes": lambda: b"x",
}


def _nested(depth: int) -> Any:
    found: Any = 0
    for _ in range(depth):
        found = [found]
    return found


made: list[Callable[[], Any]] = []
sent: list[str] = []


@step
def output() -> Any:
    return made[0]()


@step
def inputs(value: Any) -> int:
    sent.append("body")
    return 1


@effect(provider="box")
def send(key: Key, value: Any) -> int:
    sent.append("sent")
    return 1


@task
def returning() -> Any:
    return output()


@task
def calling() -> Any:
    return inputs(made[0]())


@task
def sending() -> Any:
    return send(made[0]())


@task
def given(value: Any) -> Any:
    return 1


@task
def plain() -> Any:
    return made[0]()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made.clear()
    sent.clear()
    with closing(SqliteStore(tmp_path / "store.sqlite", create=True)) as store:
        yield store


@pytest.mark.parametrize("make", ABSURD.values(), ids=ABSURD.keys())
def test_an_absurd_value_is_refused_by_name_and_place_through_every_door(
    store: SqliteStore, make: Callable[[], Any]
) -> None:
    """SEC-17: no RecursionError, no MemoryError, no endless walk; and nothing was in doubt before."""
    made.append(make)
    for plan in (returning, calling, sending, plain):
        with pytest.raises((NotEncodable, StepFailed)) as refused:
            plan.options(store=store).run(plan.spec.name)
        assert isinstance(refused.value, NotEncodable) or isinstance(refused.value.__cause__, NotEncodable)
        assert ", at $" in str(refused.value)
        assert len(str(refused.value)) < 5000
        assert all(verdict.ok for verdict in verify_run(store, plan.spec.name, None, {}))
    with pytest.raises(NotEncodable):
        given.options(store=store).run("given", make())
    assert store.run("given") is None, "a run with inputs that cannot be kept is not begun"
    assert sent == []


@pytest.mark.parametrize(
    "value",
    [
        {"__class__": "os.system", "args": ["true"]},
        {"lc": 1, "type": "constructor", "id": ["os"], "kwargs": {}},
        {"$ref": "#/x", "digest": "0" * 64, "where": "file", "media_type": "x", "size": 1},
        {"secret": "PATH"},
        "[secret PATH]",
        {"py/object": "posix.system", "!!python/object": 1},
        {"at": "", "path": "", "kind": "run_ended", "status": "done"},
    ],
)
def test_what_looks_like_our_own_marks_is_plain_data(store: SqliteStore, value: Any) -> None:
    """SEC-2: whatever a model returns comes back as it was, and means nothing."""
    made.append(lambda: value)
    plan = returning.options(store=store)
    assert plan.run("r") == value
    assert plan.run("r") == value


def test_a_run_that_could_not_keep_an_output_goes_on_when_it_can(store: SqliteStore) -> None:
    made.append(deep)
    with pytest.raises((NotEncodable, StepFailed)):
        returning.options(store=store).run("r")
    made[0] = lambda: [1]
    assert returning.options(store=store).resume("r") == [1]


# ── the source ──


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        if "examples" not in path.parts:
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def test_nothing_imports_what_builds_objects_from_bytes() -> None:
    found = []
    for path, tree in trees():
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [f"{path.name}: {name}" for name in names if name.partition(".")[0] in BUILDERS]
    assert found == []


def test_nothing_evaluates_text() -> None:
    """`eval`, `exec` and `compile` as calls; `typing.get_type_hints` reads only what the user's own module declares."""
    found = [
        f"{path.name}:{node.lineno}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("eval", "exec", "compile")
    ]
    assert found == []

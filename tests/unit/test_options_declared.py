"""What no option of `@task`, `@step` and `@effect` can be is refused where it is declared, before anything runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from milepost import Key, Retry, effect, step, task
from milepost.errors import BadName, BadOption

Anything = Any  # what a type checker would have refused before


def double(number: int) -> int:
    return 2 * number


def pay(key: Key, payee: str) -> str:
    return payee


def pieces() -> Iterator[int]:
    yield 1


async def pieces_awaited() -> AsyncIterator[int]:
    yield 1


KINDS: dict[str, tuple[Anything, Callable[..., Any]]] = {
    "task": (task, double),
    "step": (step, double),
    "effect": (effect, pay),
}


def declared(kind: str, **options: Any) -> object:
    decorator, function = KINDS[kind]
    return decorator(**options)(function)


@pytest.mark.parametrize("kind", ["step", "effect"])
@pytest.mark.parametrize("retry", [3, Retry, [Retry(on=ValueError)], "twice"], ids=["int", "class", "list", "text"])
def test_what_is_no_retry_is_refused(kind: str, retry: Any) -> None:
    with pytest.raises(BadOption, match=r"retry=: expected Retry\(on=…\), found"):
        declared(kind, retry=retry)


@pytest.mark.parametrize("kind", KINDS)
def test_an_option_there_is_none_of_is_named(kind: str) -> None:
    with pytest.raises(BadOption, match="retries=: there is no such option"):
        declared(kind, retries=3)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("task", {"reads": 5}),
        ("task", {"tools": 5}),
        ("task", {"permissions": 5}),
        ("task", {"permissions": "send"}),
        ("task", {"permissions": [5]}),
        ("task", {"instructions": 5}),
        ("task", {"parameters": 5}),
        ("task", {"model": 5}),
        ("task", {"version": 5}),
        ("step", {"reads": 5}),
        ("step", {"sources": 5}),
        ("step", {"sources": "prices.csv"}),
        ("step", {"writes": "number"}),
        ("step", {"unwatched": 5}),
        ("step", {"unwatched": [5, "number"]}),
        ("effect", {"ref": 5}),
        ("effect", {"lookup": 5}),
        ("effect", {"unwatched": b"payee"}),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(f"{k}={v!r}" for k, v in value.items()),
)
def test_an_option_of_another_kind_is_named(kind: str, options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(BadOption, match=f"{name}="):
        declared(kind, **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", [5, "double"])
def test_what_is_no_function_is_refused(kind: str, given: Any) -> None:
    with pytest.raises(BadOption, match=f"@{kind}: expected a function, found {type(given).__name__}"):
        KINDS[kind][0](given)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_what_is_declared_already_is_refused(kind: str, other: str) -> None:
    done = declared(other, name="first")
    with pytest.raises(BadOption, match=f"@{kind}: expected a plain function, found the {other} first"):
        KINDS[kind][0](done)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", [pieces, pieces_awaited])
def test_a_generator_is_refused(kind: str, function: Any) -> None:
    with pytest.raises(BadOption, match="a generator has no one output"):
        KINDS[kind][0](function)


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_name_is_none(kind: str) -> None:
    with pytest.raises(BadName, match="it is empty"):
        declared(kind, name="")


def without() -> None: ...


def another_first(payee: str) -> None: ...


def named_only(*, key: Key) -> None: ...


def unannotated(key, payee: str) -> None: ...  # type: ignore[no-untyped-def]


@pytest.mark.parametrize(
    ("function", "found"),
    [(without, "no parameter"), (another_first, "payee"), (named_only, "key"), (unannotated, "key")],
)
def test_an_effect_takes_its_key_first(function: Any, found: str) -> None:
    with pytest.raises(BadOption, match=f"expected `key: Key` as its first parameter, found {found}"):
        effect(function)

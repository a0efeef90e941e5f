"""Arguments are bound as Python binds them, written by name, and refused where they would not come back."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

import pytest

from milepost.errors import BadOption, NotDecodable, NotEncodable
from milepost.records.arguments import ArgumentsCodec


class Options(TypedDict, total=False):
    dry: bool


def plain(a: int, b: str = "x") -> None: ...
def keyed(a: int, /, b: str, *, c: bool = False) -> None: ...
def starred(a: int, *rest: str, **more: list[int]) -> None: ...
def unpacked(a: int, **options: Unpack[Options]) -> None: ...
def untyped(a, b=None): ...  # type: ignore[no-untyped-def]
def clients(client: object, a: int) -> None: ...


def _codec(function: Callable[..., object], *unwatched: str, skip_first: bool = False) -> ArgumentsCodec:
    return ArgumentsCodec(function, skip_first=skip_first, unwatched=unwatched, where="step s")


@pytest.mark.parametrize(
    ("function", "args", "kwargs"),
    [
        (plain, (1, "a"), {}),
        (plain, (1,), {}),
        (plain, (), {"b": "z", "a": 1}),
        (plain, (1,), {"b": "z"}),
        (keyed, (1, "a"), {"c": True}),
        (starred, (1, "a", "b"), {"x": [1]}),
        (starred, (1,), {}),
        (unpacked, (1,), {"dry": True}),
        (untyped, ([1, {"a": None}],), {}),
    ],
)
def test_bound_arguments_come_back_and_call_the_function(
    function: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """What was recorded must be what is called again."""
    codec = _codec(function)
    bound = codec.bind(args, kwargs)
    expected = inspect.signature(function).bind(*args, **kwargs)
    expected.apply_defaults()
    assert bound == dict(expected.arguments)
    assert list(bound) == list(expected.arguments)
    assert codec.decode(codec.round_trip(bound)) == bound
    assert codec.spread(bound) == (expected.args, expected.kwargs)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((), {}), ((1, "a", 2), {}), ((1,), {"a": 2}), ((1,), {"z": 2}), ((), {"b": "x"}), ((1, "a"), {"b": "c"})],
)
def test_a_wrong_call_is_a_type_error_that_names_the_function(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"plain\(\): "):
        _codec(plain).bind(args, kwargs)


def test_an_unwatched_parameter_is_bound_and_never_written() -> None:
    """A client object has no place in a record, and need not be encodable."""
    codec = _codec(clients, "client")
    bound = codec.bind((object(), 1), {})
    assert codec.watched == ("a",)
    assert codec.encode(bound) == b'{"a":1}'
    assert codec.immutable


def test_an_unknown_unwatched_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(BadOption, match=r"'klient'.*client, a"):
        _codec(clients, "klient")


def test_the_key_of_an_effect_is_left_out() -> None:
    codec = _codec(clients, skip_first=True)
    assert codec.watched == ("a",)
    assert codec.bind((3,), {}) == {"a": 3}


def test_a_wrong_argument_is_refused_with_the_parameter_in_its_path() -> None:
    with pytest.raises(NotEncodable) as caught:
        _codec(starred).round_trip({"a": 1, "rest": ("a", 2), "more": {}})
    assert caught.value.path == "$.rest[1]"


def test_an_argument_that_comes_back_changed_is_refused() -> None:
    @dataclass
    class Doubling:
        value: int

        def __post_init__(self) -> None:
            self.value *= 2

    def body(item: Doubling) -> None: ...

    codec = _codec(body)
    with pytest.raises(NotEncodable) as caught:
        codec.round_trip({"item": Doubling(1)})
    assert caught.value.path == "$.item.value"


def test_a_parameter_added_with_a_default_reads_older_arguments() -> None:
    assert _codec(plain).decode(b'{"a":1}') == {"a": 1, "b": "x"}
    for data in (b"{}", b'{"a":1,"gone":2}', b"[]", b"{"):
        with pytest.raises(NotDecodable):
            _codec(plain).decode(data)


def test_names_in_quotes_are_found_in_the_function_around() -> None:
    """With `from __future__ import annotations` every annotation here is text."""

    @dataclass
    class Local:
        file: Path
        child: Local | None = None

    def body(item: Local) -> None: ...

    codec = _codec(body)
    bound = codec.bind((Local(Path("a"), Local(Path("b"))),), {})
    assert codec.decode(codec.round_trip(bound)) == bound
    assert codec.holds_paths


def test_a_name_that_does_not_exist_is_refused_at_declaration() -> None:
    def body(item: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(NotEncodable, match="Nowhere") as caught:
        _codec(body)
    assert "module level" in caught.value.expected

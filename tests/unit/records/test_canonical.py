"""One value has one text; what is not JSON is refused in both directions."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest

from milepost.errors import NotEncodable
from milepost.records.canonical import DEPTH_MAX, canonical, digest, parse


def test_the_format_is_fixed_for_ever() -> None:
    """Digests and seals of old runs depend on these very bytes."""
    value: Any = {"b": [1, 1.0, -0.0, True, None, "é\n\u2028"], "a": {}, "ab": 10**20}
    assert canonical(value) == '{"a":{},"ab":100000000000000000000,"b":[1,1.0,-0.0,true,null,"é\\n\u2028"]}'.encode()
    assert digest(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": [0, math.nan]}, "$.a[1]"),
        ([-math.inf], "$[0]"),
        ({"a b": {"c": "\udfff"}}, '$["a b"].c'),
        ({"\ud800": 1}, '$["\\\\ud800"]'),
        ({"a": {1: 2}}, "$.a"),
        ([(1,)], "$[0]"),
        ({"a": b""}, "$.a"),
        ([10**5000], "$[0]"),
    ],
)
def test_what_is_not_json_is_refused_with_its_path(value: Any, path: str) -> None:
    with pytest.raises(NotEncodable) as caught:
        canonical(value)
    assert caught.value.path == path
    str(caught.value).encode("utf-8")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"NaN", "NaN"),
        (b"[-Infinity]", "Infinity"),
        (b"1e999", "too large"),
        (b'{"a":{"b":1,"b":2}}', "'b' is given twice"),
        (b'"\xff"', "utf-8"),
        (b'"\xed\xa0\x80"', "utf-8"),
        (b'"\\ud800"', "surrogate"),
        (b'"\\uDfff"', "surrogate"),
        (b"", "Expecting value"),
        (b"1 2", "Extra data"),
        (b"9" * 5000, "4300"),
        (b"[" * 1_000_000, "nested too deep"),
        (b"[" * (DEPTH_MAX + 1) + b"]" * (DEPTH_MAX + 1), "nested too deep"),
    ],
)
def test_text_that_is_not_our_json_is_a_value_error_with_its_reason(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse(data)


def test_the_deepest_value_that_may_be_written_can_be_read() -> None:
    deep: Any = []
    for _ in range(DEPTH_MAX - 1):
        deep = [deep]
    assert parse(canonical(deep)) == deep
    with pytest.raises(NotEncodable, match="at most 100 levels"):
        canonical([deep])


def test_a_pair_of_surrogates_in_escapes_is_one_character() -> None:
    assert parse(b'"\\ud83d\\ude00"') == "\U0001f600"
    assert sys.maxunicode > 0xFFFF

"""Every path inside a value is found, with its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from milepost.records.fingerprint import fingerprint
from milepost.records.paths import find_paths


class Pair(NamedTuple):
    left: Path
    right: str


class Model(BaseModel):
    file: Path


@dataclass
class Report:
    file: Path
    rows: list[Any] = field(default_factory=list)


def test_paths_are_found_wherever_the_codec_goes() -> None:
    value = {
        "r": Report(Path("a"), [Pair(Path("b"), "x"), (Path("c"), {Path("d")}), Model(file=Path("e"))]),
        Path("k"): None,
    }
    assert find_paths(value) == [
        ("$.r.file", Path("a")),
        ("$.r.rows[0].left", Path("b")),
        ("$.r.rows[1][0]", Path("c")),
        ("$.r.rows[1][1][…]", Path("d")),
        ("$.r.rows[2].file", Path("e")),
        ("$.k", Path("k")),
    ]
    assert find_paths(Path("x")) == [("$", Path("x"))]
    assert find_paths({"a": "b"}) == []


def test_a_circle_is_left_again() -> None:
    circle: list[Any] = [Path("a")]
    circle.append(circle)
    assert find_paths(circle)[0] == ("$[0]", Path("a"))


def test_fingerprints_are_fixed_keyed_and_of_their_own_domain() -> None:
    """A fingerprint is neither the digest of an artifact nor a seal."""
    assert fingerprint(b"x", None) == "f03726cfc0eada07f4192e42ab8cb9f34480e98c772822db35ec6efadb8e444e"
    assert len({fingerprint(b"x", None), fingerprint(b"x", b"k"), fingerprint(b"x", b"l")}) == 3

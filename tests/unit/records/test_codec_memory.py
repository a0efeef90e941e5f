"""A large output must not bring the process down: its cost in memory is a small multiple of its size."""

from __future__ import annotations

import subprocess
import sys

import pytest

SIZE = 100_000_000
CHILD = """
import sys, tracemalloc
from dataclasses import dataclass
from milepost.records.codec import Codec

@dataclass
class Page:
    text: str

make = {{"str": lambda: "é" * 10 + "x" * {size}, "bytes": lambda: b"x" * {size}, "Page": lambda: Page("x" * {size})}}
kind = sys.argv[1]
codec = Codec(Page if kind == "Page" else {{"str": str, "bytes": bytes}}[kind], where="w")
value = make[kind]()
tracemalloc.start()
data, decoded = codec.round_trip(value)
print(tracemalloc.get_traced_memory()[1])
assert decoded == value
"""


@pytest.mark.parametrize("kind", ["str", "bytes", "Page"])
def test_a_large_output_costs_less_than_three_times_its_size(kind: str) -> None:
    """Measured in a process of its own, so that nothing else is counted."""
    command = [sys.executable, "-c", CHILD.format(size=SIZE), kind]
    peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert peak < 3 * SIZE

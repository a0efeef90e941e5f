"""Where a run stands: a holder is taken for dead only when there is a sign of it."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from milepost.records.shown import inert
from milepost.records.times import format_time
from milepost.runtime.clock import SystemClock
from milepost.runtime.leases import me
from milepost.runtime.standing import is_dead
from milepost.stores.contract import LEASE_S, Held
from milepost.views.evidence import LINES_MAX, evidence_lines, text_lines
from milepost.views.words import ago, amount, cost, lasting

NOW = datetime(2026, 10, 31, 12, 0, tzinfo=UTC)


def held(**holder: object) -> Held:
    mine = replace(me(SystemClock()), **holder)  # type: ignore[arg-type]
    return Held("one", 1, mine, 5, format_time(NOW))


def gone_pid() -> int:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return child


def test_a_holder_on_this_machine_is_dead_when_its_process_or_its_boot_is_gone() -> None:
    """Its heartbeat says nothing here: the process is there, or it is not."""
    late = NOW + timedelta(days=1)
    assert not is_dead(held(), late)
    assert is_dead(held(pid=gone_pid()), NOW)
    assert is_dead(held(boot_id="another"), NOW)


def test_a_holder_elsewhere_is_dead_when_silent_for_a_lease() -> None:
    """A clock that ran backward makes that impossible to tell: then it lives."""
    far = held(host="elsewhere")
    assert not is_dead(far, NOW + timedelta(seconds=LEASE_S))
    assert is_dead(far, NOW + timedelta(seconds=LEASE_S + 1))
    assert not is_dead(far, NOW - timedelta(hours=1))


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (0.012, "12 ms"),
        (0.44, "0.4 s"),
        (1.0, "1 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (185, "3 min 5 s"),
        (8040, "2 h 14 min"),
        (273600, "3 d 4 h"),
    ],
)
def test_durations_are_said_in_two_units_at_most(seconds: float, said: str) -> None:
    """Three days on, nobody wants microseconds."""
    assert lasting(seconds) == said


def test_sizes_ages_and_costs_are_said_shortly() -> None:
    """And a clock that ran backward is said as such."""
    assert [amount(size) for size in (0, 999, 1000, 4200, 17_000_000, 5 * 10**15)] == [
        "0 B",
        "999 B",
        "1.0 KB",
        "4.2 KB",
        "17 MB",
        "5000 TB",
    ]
    assert ago(format_time(NOW), NOW + timedelta(minutes=2)) == "2 min ago"
    assert ago(format_time(NOW), NOW - timedelta(minutes=2)) == "in the future by this clock"
    assert cost({"input_tokens": 1200, "output_tokens": 3, "cost": "0"}) == "1,200 + 3 tokens"


def test_inert_shows_whatever_could_act() -> None:
    """Controls, bidi overrides, separators, surrogates, invisible blanks; ordinary text of any script stays."""
    assert inert("Zoë 日本語 ✓ [b]") == "Zoë 日本語 ✓ [b]"
    assert inert("a\x1b[2J\r\n\u202e\u2028\ud800\x9b\u200b") == "a\\x1b[2J\\r\\n\\u202e\\u2028\\ud800\\x9b\\u200b"
    assert inert("a\nb", lines=True) == "a\nb"


def test_evidence_is_bounded_and_inert() -> None:
    """A diff of ten thousand lines does not drown the question."""
    lines = evidence_lines({f"k{i}\n": "v\x1b" for i in range(1000)})
    assert len(lines) == LINES_MAX + 2
    assert lines[0] == "  k0\\n: v\\x1b"
    assert evidence_lines([]) == []
    assert text_lines("a\nb") == ["  | a", "  | b"]

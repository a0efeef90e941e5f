"""When a watch starts a run again: waits that double, a bound, and what begins the count anew."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from milepost.config import WatchConfig
from milepost.watch.memory import Memory
from milepost.watch.tries import Seen, Tries, ended_badly, is_given_up, may_start, started, valid, wait

NOW = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)
CONFIG = WatchConfig(restarts=3, first_wait=timedelta(seconds=5), longest_wait=timedelta(seconds=60))
DIED = Seen("r", "died", head_seq=7, token=2, brought=1)


def _ended(seen: Seen = DIED, tries: Tries | None = None, *, after: Seen | None = None) -> Tries:
    return ended_badly(started(tries, seen, CONFIG, NOW), after or seen, CONFIG, NOW)


def test_waits_double_up_to_the_longest() -> None:
    assert [wait(count, CONFIG).total_seconds() for count in (1, 2, 3, 5, 500)] == [5, 10, 20, 60, 60]


def test_a_run_is_started_again_after_its_wait_and_at_the_bound_no_more() -> None:
    tries: Tries | None = None
    for _ in range(CONFIG.restarts):
        assert may_start(tries, CONFIG, NOW + timedelta(hours=1))
        tries = _ended(tries=tries)
        assert not may_start(tries, CONFIG, NOW)
    assert is_given_up(tries, CONFIG)
    assert not may_start(tries, CONFIG, NOW + timedelta(days=9))


def test_a_new_checkpoint_begins_the_count_anew() -> None:
    """A run that dies now and then and gets on all the same is none that is poisoned."""
    tries = _ended(tries=_ended())
    assert tries.count == 2
    assert _ended(tries=tries, after=replace(DIED, brought=2)).count == 1
    assert started(tries, replace(DIED, brought=2), CONFIG, NOW).count == 1


def test_somebody_who_moves_the_run_begins_the_count_anew() -> None:
    """An answer, a resume by hand: whoever did that wants it to go on."""
    tries = _ended()
    assert valid(tries, DIED) == tries
    for moved in (replace(DIED, word="answered"), replace(DIED, head_seq=8), replace(DIED, token=3)):
        assert valid(tries, moved) is None


def test_a_start_whose_end_nobody_saw_counts(tmp_path: Path) -> None:
    """The watch was killed with its run; the next one must not begin at zero."""
    path = tmp_path / "store.sqlite.watch"
    Memory(path).put("r", started(None, DIED, CONFIG, NOW))
    found = Memory(path).get("r")
    assert found is not None
    assert valid(found, replace(DIED, head_seq=9)) == found
    assert not found.settled


def test_a_memory_that_somebody_spoilt_remembers_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite.watch"
    for text in ("", "[]", '{"r": 3}', '{"r": {"count": 1}}', "{"):
        path.write_text(text, encoding="utf-8")
        assert Memory(path).get("r") is None


def test_runs_that_ended_are_forgotten(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "store.sqlite.watch")
    memory.put("r", _ended())
    memory.put("s", _ended())
    memory.keep_only({"s"})
    assert (memory.get("r"), Memory(memory.path).get("s")) == (None, memory.get("s"))

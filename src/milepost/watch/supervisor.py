"""The watch itself: looks, starts, hears of ends, tells people, sleeps until something changes or is due."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from milepost.config import WatchConfig
from milepost.errors import UnavailableError
from milepost.notify.delivery import Notifier
from milepost.records.times import parse_time
from milepost.watch.children import Children, Signals
from milepost.watch.look import Looker, Sight
from milepost.watch.memory import Memory
from milepost.watch.telling import Telling
from milepost.watch.tries import Seen, Tries, ended_badly, is_given_up, may_start, started, valid

POLL_S = 1.0
"""Seconds between two questions to the store whether anything changed: one number, no query of runs."""
LOOK_S = 5.0
"""Seconds after which runs are looked at although nothing changed: a process that dies writes nothing."""
ORDERLY = frozenset({0, 4, 5})
"""Exit statuses of a resume that need no other start: done, waits for a person, waits for a time."""

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Watched:
    """What a watch needs: where to look, how to remember and tell, and whom it says what happens."""

    looker: Looker
    notifier: Notifier
    config: WatchConfig
    changed: Callable[[], object]  # another value once something in the store is another
    now: Callable[[], datetime]
    say: Callable[[Event], None]


class Supervisor:
    """Watches one store until it is told to stop (or, with `once`, until nothing is left to do)."""

    def __init__(self, watched: Watched, store: Path) -> None:
        self._w = watched
        self._memory = Memory(store.with_name(f"{store.name}.watch"))
        self._store = str(store)
        self._children = Children(self._store)
        self._telling = Telling(watched.notifier)
        self._signals = Signals()
        self._once = False
        self._said_given_up: set[str] = set()
        self._not_told: dict[str, str] = {}
        self._stop: int | None = None
        self._version: object = None
        self._look_at: datetime | None = None  # None: at once

    def watch(self, *, once: bool = False) -> int:
        """Watch until a signal (its number is returned, else 0) or, with `once`, until what can go on has gone on.

        Crash: the runs go on without a watch; the next one remembers how often each was started.
        """
        self._once = once
        with self._signals.heard_here():
            self._w.say({"event": "watching", "store": self._store, "at_once": self._w.config.at_once})
            while not self._is_over():
                self._round()
                if not self._is_over():
                    self._signals.sleep(self._pause())
            self._w.say({"event": "stopped", "signal": self._stop})
        return self._stop or 0

    def _is_over(self) -> bool:
        self._hear_stops()
        if len(self._children):
            return False
        return self._stop is not None or (self._once and self._look_at is not None and not self._telling.is_busy)

    def _round(self) -> None:
        """Do everything that can be done now without waiting."""
        self._hear_stops()
        self._note_ends()
        self._note_told()
        if self._stop is None:
            self._look_if_possible()

    # ── looking and starting ──

    def _look_if_possible(self) -> None:
        """Look, if there is reason to; what is away (the store, room for a process) is tried again a while later."""
        try:
            self._look_if_needed()
        except UnavailableError as error:
            if self._once:
                raise
            self._look_at = self._w.now() + timedelta(seconds=LOOK_S)
            self._w.say({"event": "trouble", "error": str(error)})

    def _look_if_needed(self) -> None:
        version, now = self._w.changed(), self._w.now()
        is_due = any(at is not None and at <= now for at in (self._look_at, self._telling.next_at))
        if is_due or self._look_at is None or version != self._version:
            self._look()
            self._version = version

    def _look(self) -> None:
        self._telling.start()
        sight = self._w.looker.look()
        self._memory.keep_only(sight.run_ids)
        self._start_what_may(sight)
        self._look_at = min(self._moments(sight))

    def _moments(self, sight: Sight) -> list[datetime]:
        """Return when to look again: soon, when a run is due, when one that ended badly may be started again."""
        now, tries = self._w.now(), map(self._memory.get, sight.run_ids)
        later = [parse_time(found.next_at) for found in tries if found is not None]
        due = [] if sight.due_at is None else [sight.due_at]
        return [now + timedelta(seconds=LOOK_S), *(at for at in (*later, *due) if at > now)]

    def _start_what_may(self, sight: Sight) -> None:
        config = self._w.config
        for seen in sight.can_go_on:
            if seen.run_id in self._children:
                continue
            tries = self._tries_of(seen)
            if is_given_up(tries, config):
                self._say_given_up(seen)
            elif len(self._children) < config.at_once and may_start(tries, config, self._w.now()):
                self._start(seen)

    def _start(self, seen: Seen) -> None:
        """Start a run; that it was started is remembered first. Crash: a start that counts, or the run goes on."""
        tries = started(self._tries_of(seen), seen, self._w.config, self._w.now())
        self._memory.put(seen.run_id, tries)
        self._said_given_up.discard(seen.run_id)
        pid = self._children.start(seen.run_id)
        self._w.say({"event": "started", "run_id": seen.run_id, "why": seen.word, "start": tries.count, "pid": pid})

    def _tries_of(self, seen: Seen) -> Tries | None:
        """Return what is remembered of a run; a start whose end nobody has seen ended some time before now."""
        tries = self._memory.get(seen.run_id)
        if tries is not None and not tries.settled:
            tries = ended_badly(tries, seen, self._w.config, self._w.now())
            self._memory.put(seen.run_id, tries)
        return valid(tries, seen)

    def _say_given_up(self, seen: Seen) -> None:
        if seen.run_id not in self._said_given_up:
            self._said_given_up.add(seen.run_id)
            self._w.say({"event": "given_up", "run_id": seen.run_id, "starts": self._w.config.restarts})

    # ── what ends ──

    def _note_ends(self) -> None:
        for run_id, status in self._children.ended():
            self._look_at, after = None, Event()
            with suppress(UnavailableError):  # a start whose end was not noted: the next look counts it
                after = self._after(run_id, status)
            self._w.say({"event": "ended", "run_id": run_id, "status": status, **after})

    def _after(self, run_id: str, status: int) -> Event:
        """Remember how a start ended. Crash: a start whose end nobody has seen, which counts."""
        seen, tries = self._w.looker.seen(run_id), self._memory.get(run_id)
        if seen is None or tries is None or status in ORDERLY or self._stop is not None:
            self._memory.put(run_id, None)
            return {}
        tries = ended_badly(tries, seen, self._w.config, self._w.now())
        self._memory.put(run_id, tries)
        return {} if is_given_up(tries, self._w.config) else {"again_at": tries.next_at}

    def _note_told(self) -> None:
        delivery = self._telling.finished()
        if delivery is None:
            return
        if delivery.sent or (delivery.failed and delivery.failed != self._not_told):
            self._w.say({"event": "told", "channels": sorted(set(delivery.sent)), "failed": delivery.failed})
        if delivery.sent or delivery.failed:
            self._not_told = delivery.failed  # the same trouble is said once

    def _hear_stops(self) -> None:
        while (number := self._signals.next_stop()) is not None:
            self._stop = self._stop or number
            self._children.signal(number)
            self._w.say({"event": "stopping", "signal": number, "runs": len(self._children)})

    # ── sleeping ──

    def _pause(self) -> float:
        """Return how long to sleep: until something is due, at most a poll."""
        now = self._w.now()
        moments = [at for at in (self._look_at, self._telling.next_at) if at is not None and at > now]
        left = [(at - now).total_seconds() for at in moments]
        return 0.0 if self._look_at is None else min([POLL_S, *left])

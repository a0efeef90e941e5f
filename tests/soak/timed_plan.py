"""A plan in which much depends on the time: a lookup that must settle, a key that is kept for a time, waits.

Every provider loses the answer to the first send of each key. Its memory counts true seconds, not those of the run.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from clock import START, MovableClock
from small_plan import RUN_ID

from milepost import Applied, Found, Key, NotFound, Retry, effect, sleep, step, task
from milepost.records.canonical import canonical
from milepost.records.times import format_time
from milepost.stores.contract import AnswerRow
from milepost.stores.sqlite.store import SqliteStore

SETTLE = timedelta(seconds=30)
LIFETIME = timedelta(hours=1)


class Busy(Exception):
    retry_after = 90


class TimedOffice:
    """Two providers: `can be asked` applies each send and can be looked up, `keeps keys` applies a key once."""

    RESULT = ("free", "asked", "kept")

    def __init__(self, clock: MovableClock) -> None:
        self.clock = clock
        self.applied: dict[str, list[float]] = {}  # key -> true moments of the sends that were applied
        self.tries: Counter[str] = Counter()
        self.plan = self._planned()

    def twice(self) -> dict[str, int]:
        return {key: len(moments) for key, moments in self.applied.items() if len(moments) > 1}

    def heard(self, key: Key, *, keeps: bool) -> None:
        """Take a send. Raises: TimeoutError at the first one of a key, after it was applied."""
        moments = self.applied.setdefault(str(key), [])
        known = keeps and moments and self.clock.ticks() - moments[0] < LIFETIME.total_seconds()
        if not known:
            moments.append(self.clock.ticks())
        self.tries[str(key)] += 1
        if self.tries[str(key)] == 1:
            raise TimeoutError("no answer")

    def find(self, key: Key) -> Found[str] | NotFound:
        moments = self.applied.get(str(key), ())
        settled = [then for then in moments if self.clock.ticks() - then >= SETTLE.total_seconds()]
        return Found("asked", ref="a") if settled else NotFound()

    def answer(self, store: SqliteStore) -> None:
        """Answer as a person who looks at the providers; keep what a question about anything else expects."""
        for question in store.questions(RUN_ID):
            effect_name = question.path.partition("#")[0]
            applied = any(self.applied.values()) and question.kind == "outcome_unknown"
            row = AnswerRow(
                question.question_id,
                RUN_ID,
                "applied" if applied else "again",
                "ada",
                format_time(START),
                ref="a" if applied else None,
                result=canonical(effect_name) if applied else None,
            )
            store.answer(row)

    def _planned(self) -> Any:
        find, heard, tries = self.find, self.heard, self.tries

        @step(retry=Retry(on=Busy, attempts=5))
        def busy() -> str:
            tries["busy"] += 1
            if tries["busy"] < 3:
                raise Busy
            return "free"

        @effect(provider="can be asked", lookup=find, settle=SETTLE, retry=Retry(on=TimeoutError, attempts=5))
        def asked(key: Key) -> Applied[str]:
            heard(key, keeps=False)
            return Applied("asked", ref="a")

        @effect(provider="keeps keys", key_lifetime=LIFETIME)
        def kept(key: Key) -> Applied[str]:
            heard(key, keeps=True)
            return Applied("kept", ref="k")

        @task(name="timed")
        def timed() -> tuple[str, str, str]:
            first = busy()
            sleep(timedelta(minutes=1), name="nap")
            return first, asked(), kept()

        return timed

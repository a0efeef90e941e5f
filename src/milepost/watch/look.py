"""What a watch sees when it looks at the store: the runs that could go on, and when the next one is due."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from milepost.errors import RefusedError
from milepost.records.model import RunStatus
from milepost.records.times import parse_time
from milepost.runtime.opening import read_snapshot
from milepost.runtime.standing import CAN_GO_ON, all_runs, standing, waits_until
from milepost.stores.contract import RunRow, Store
from milepost.watch.tries import Seen

_UNDER_WAY = (RunStatus.RUNNING, RunStatus.ASKING, RunStatus.WAITING, RunStatus.INTERRUPTED)
"""Statuses of runs a watch cares for: what failed waits for somebody who mends it, what ended is over."""


@dataclass(frozen=True, slots=True)
class Sight:
    """Runs that can go on, oldest start first; all that are under way; when the next waiting one is due."""

    can_go_on: list[Seen]
    run_ids: set[str]
    due_at: datetime | None


class Looker:
    """Looks at one store; reads the journal of a waiting run only once for each of its waits."""

    def __init__(self, store: Store, seal_key: bytes | None, now: Callable[[], datetime]) -> None:
        self._store, self._seal_key, self._now = store, seal_key, now
        self._until: dict[str, tuple[int, datetime | None]] = {}

    def look(self) -> Sight:
        """Return what could go on now."""
        rows = sorted(self._rows(), key=lambda row: row.started_at)
        waits = [until for row in rows if (until := self._waits_until(row)) is not None]
        going = [found for row in rows if (found := self._seen(row)).word in CAN_GO_ON]
        self._until = {row.run_id: self._until[row.run_id] for row in rows if row.run_id in self._until}
        return Sight(going, {row.run_id for row in rows}, min(waits, default=None))

    def seen(self, run_id: str) -> Seen | None:
        """Return one run as it stands; None when there is no such run any more."""
        row = self._store.run(run_id)
        return None if row is None else self._seen(row, at_once=True)

    def _rows(self) -> Iterator[RunRow]:
        for status in _UNDER_WAY:
            yield from (row for row in all_runs(self._store, status=status) if row.head.seq > 0)

    def _seen(self, row: RunRow, *, at_once: bool = False) -> Seen:
        until = self._waits_until(row)
        is_waiting = until is not None and until > self._now() and not at_once
        word = "waiting" if is_waiting else self._word(row)
        brought = row.progress.verified_count + row.progress.applied_count
        token = row.held.token if row.held is not None else 0
        return Seen(row.run_id, word, row.head.seq, token, brought)

    def _word(self, row: RunRow) -> str:
        try:
            return standing(self._store, row, self._seal_key, self._now()).word
        except RefusedError:
            return "refused"  # its questions were altered: `resume` says so; it keeps no other run from going on

    def _waits_until(self, row: RunRow) -> datetime | None:
        if row.progress.status is not RunStatus.WAITING or row.held is not None or row.cancel is not None:
            return None
        known = self._until.get(row.run_id)
        if known is None or known[0] != row.head.seq:
            text = self._read_until(row.run_id)
            known = self._until[row.run_id] = (row.head.seq, None if text is None else parse_time(text))
        return known[1]

    def _read_until(self, run_id: str) -> str | None:
        try:
            return waits_until(read_snapshot(self._store, run_id, self._seal_key).snapshot)
        except RefusedError:
            return None  # it is gone since it was listed

"""Where a run stands, for people: what its row says, and whether somebody works on it or a resume could go on.

Reads only. Whether a holder is dead is *proven* when its run is taken; here it is looked at without taking anything.
Called by the command line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from milepost.protocol.snapshot import Snapshot
from milepost.records.frozen import frozen
from milepost.records.model import ENDED, RunStatus
from milepost.records.rows import AnswerRow
from milepost.records.times import age, parse_time
from milepost.runtime.answering import settling
from milepost.runtime.clock import SystemClock
from milepost.runtime.leases import me
from milepost.runtime.opening import read_snapshot
from milepost.stores.contract import LEASE_S, Held, QuestionRow, RunRow, Store

CAN_GO_ON = frozenset({"died", "answered", "due", "interrupted", "cancelling"})
"""Words of runs that a resume carries on without anybody mending or deciding anything first."""
PAGE = 200
_UNTIL = re.compile(r"until (\d{4}-\d\d-\d\dT\S+\+00:00): ")
"""How the row of a waiting run says until when (`runtime.journal`)."""


@frozen
class Standing:
    """`word` is the row's status, or what it has become since: died, answered, due, cancelling, unstarted.

    unstarted: its process died before the first record; nothing was done, starting it again begins it.
    """

    word: str
    holder: str = ""

    @property
    def can_go_on(self) -> bool:
        return self.word in CAN_GO_ON


def standing(
    store: Store, row: RunRow, seal_key: bytes | None, now: datetime, *, asking: frozenset[str] | None = None
) -> Standing:
    """Say where a run stands now. Reads its journal only when it waits for a time that its row does not say.

    `asking` are the ids of the runs with an unanswered question, for a caller that tells about many runs.
    """
    status = row.progress.status
    if status in ENDED:
        return Standing(status.value)
    if row.held is not None and not is_dead(row.held, now):
        return Standing("running", f"process {row.held.holder.pid} on {row.held.holder.host}")
    if row.head.seq == 0:
        return Standing("unstarted")
    if row.cancel is not None:
        return Standing("cancelling")
    if status is RunStatus.RUNNING:
        return Standing("died")
    if status is RunStatus.ASKING and not _asks(store, row, asking):
        return Standing("answered")
    if status is RunStatus.WAITING and _is_due(store, row, seal_key, now):
        return Standing("due")
    return Standing(status.value)


def _asks(store: Store, row: RunRow, asking: frozenset[str] | None) -> bool:
    return row.run_id in asking if asking is not None else bool(unanswered(store, row.run_id))


def is_dead(held: Held, now: datetime) -> bool:
    """Say whether a holder seems to be gone: its process is, its machine was started anew, or it fell silent."""
    here = me(SystemClock())
    if held.holder.host == here.host:
        return held.holder.boot_id != here.boot_id or not _lives(held.holder.pid)
    passed = age(held.beat_at, now)
    return passed is not None and passed.total_seconds() > LEASE_S


def _lives(pid: int) -> bool:
    """Say whether a process works; one that has ended and only waits to be reaped by its parent does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _state_of(pid) not in ("Z", "X")


def _state_of(pid: int) -> str:
    """Return the kernel's letter for what a process does, "" where it cannot be told."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def unanswered(store: Store, run_id: str | None = None) -> list[QuestionRow]:
    """Return the open questions nobody has answered yet, oldest first: of one run or of all."""
    rows = store.questions(run_id)
    given: dict[str, list[AnswerRow]] = {}
    for answer in (a for asking in {row.run_id for row in rows} for a in store.answers(asking) if a.accepted):
        given.setdefault(answer.question_id, []).append(answer)
    return [row for row in rows if not settling(row, given.get(row.question_id, ()))]


def waits_until(snapshot: Snapshot) -> str | None:
    """Return the recorded time before which a waiting run does not go on, None when it waits for none."""
    if snapshot.ended is not None and snapshot.ended.until is not None:
        return snapshot.ended.until
    steps = [s.until for s in snapshot.steps.values() if s.until is not None and not s.finished]
    effects = [e.until for e in snapshot.effects.values() if e.until is not None and not e.finished]
    return min([*steps, *effects], default=None)


def _is_due(store: Store, row: RunRow, seal_key: bytes | None, now: datetime) -> bool:
    said = _UNTIL.match(row.progress.detail)
    until = said[1] if said else waits_until(read_snapshot(store, row.run_id, seal_key).snapshot)
    return until is None or parse_time(until) <= now


def all_runs(store: Store, *, task: str | None = None, status: RunStatus | None = None) -> Iterator[RunRow]:
    """Yield every run, of this task and status, newest start first, a page at a time."""
    last: str | None = None
    while page := store.runs(task=task, status=status, limit=PAGE, before=last):
        yield from page
        last = page[-1].run_id


def unfinished(store: Store) -> list[RunRow]:
    """Return the runs a resume can be asked for: begun and not ended, oldest start first."""
    found = [row for row in all_runs(store) if row.progress.status not in ENDED and row.head.seq > 0]
    return found[::-1]

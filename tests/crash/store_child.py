"""A process that works on a store until it is killed. Told what to do by its arguments; prints what was durable.

store_child.py STORE RUN append COUNT [KILL_AT before|after]   append and wait, `acked N` for each
store_child.py STORE RUN hold                                  hold the run; append once per line of input
store_child.py STORE RUN fork                                  fork; the child tries to append, then stays
store_child.py STORE RUN reopen                                fork; the child opens the store and others
store_child.py STORE RUN leave                                 append without waiting and exit
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

from milepost.errors import LeaseLost, StoreUnavailable
from milepost.stores.contract import Batch, Head, Holder, Lease, NewRun, StoredRecord
from milepost.stores.sqlite.connection import connect_sqlite
from milepost.stores.sqlite.store import SqliteStore

AT = "2026-11-01T10:00:00Z"


def say(*words: object) -> None:
    print(*words, flush=True)


def batch(lease: Lease, seq: int) -> Batch:
    records = [StoredRecord(n, "", "note", b'{"n":1}', b"s" * 32) for n in (2 * seq - 1, 2 * seq)]
    return Batch(lease.run_id, lease.token, records, Head(2 * seq, b"h" * 32))


class Dies:
    """A real connection that kills its process before or after its N-th commit."""

    def __init__(self, path: str, kill_at: int, when: str) -> None:
        self._inner, self._left, self._when = connect_sqlite(path), kill_at, when

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def execute(self, sql: str, values: Any = ()) -> sqlite3.Cursor:
        if sql != "COMMIT":
            return self._inner.execute(sql, values)
        self._left -= 1
        if self._left == 0 and self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        done = self._inner.execute(sql)
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return done


def append(store: SqliteStore, lease: Lease, count: int) -> None:
    for seq in range(1, count + 1):
        store.append(batch(lease, seq)).wait()
        say("acked", 2 * seq)


def hold(store: SqliteStore, lease: Lease) -> None:
    say("holding")
    for seq, _ in enumerate(sys.stdin, 1):
        try:
            store.append(batch(lease, seq)).wait()
            say("acked", 2 * seq)
        except LeaseLost:
            say("lost")
        except StoreUnavailable as error:
            say("unavailable", error)


def fork(store: SqliteStore, lease: Lease) -> None:
    store.append(batch(lease, 1)).wait()
    if os.fork() == 0:
        for attempt in (
            lambda: store.append(batch(lease, 2)),
            lambda: store.run(lease.run_id),
            lambda: store.renew(lease, AT),
        ):
            try:
                attempt()
                say("child spoke for the run")
            except StoreUnavailable as error:
                say("refused", "forked" in str(error))
        say("child", os.getpid())
    sys.stdin.read()


def reopen(store: SqliteStore) -> None:
    """Fork, and say how the child fares that opens what is open here, what was open, and what nobody had open."""
    was_open = store.path.with_name("was.sqlite")
    SqliteStore(was_open, create=True).close()
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        say("parent", len(store.runs()))
        return
    link = store.path.with_name("link.sqlite")
    link.symlink_to(store.path)
    tries: list[tuple[Path, dict[str, bool]]] = [
        (store.path, {"create": False}),
        (store.path, {"create": True}),
        (store.path, {"create": False, "read_only": True}),
        (link, {"create": False}),
        (was_open, {"create": False}),
        (store.path.with_name("new.sqlite"), {"create": True}),
    ]
    for path, how in tries:
        try:
            SqliteStore(path, create=how["create"], read_only=how.get("read_only", False)).close()
            say("opened", path.name)
        except StoreUnavailable as error:
            say("refused" if "forked" in str(error) and "spawn" in error.hint else error, path.name)
    os._exit(0)


def main() -> None:
    path, run_id, what, *more = sys.argv[1:]
    connect: Any = None
    if len(more) == 3:
        connect = lambda name: Dies(name, int(more[1]), more[2])  # noqa: E731 — a factory bound to the arguments
    store = SqliteStore(Path(path), create=False, connect=connect)
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    lease = store.create_run(NewRun(run_id, "task", run_id, None, AT, Holder("here", boot_id, os.getpid(), AT)))
    assert lease is not None
    if what == "append":
        append(store, lease, int(more[0]))
    elif what == "hold":
        hold(store, lease)
    elif what == "fork":
        fork(store, lease)
    elif what == "reopen":
        reopen(store)
    elif what == "leave":
        store.append(batch(lease, 1))


main()

"""Every write, sync and truncation that SQLite makes fails: EIO, full, torn; once, and from there on.

A point is `KIND[+] N`. What was shown as durable is there afterwards, the database is whole, and the run resumes to
the outcome of the undisturbed one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, cast

from apsw_shape import Connection, FaultyFiles
from small_plan import LINES, RUN_ID, Office, holds_and_resumes
from tally import Harm, NotReached, Points, broken

from milepost.errors import MilepostError
from milepost.records.model import Record
from milepost.stores.sqlite.connection import Connect
from milepost.stores.sqlite.store import SqliteStore

KIND = "faults"
CONNECT = cast(Connect, Connection)


@contextmanager
def opened(folder: Path) -> Iterator[Points]:
    files = FaultyFiles()
    numbers = count()
    reference = started(folder / "reference", Office(), [])
    numbered = range(1, files.counted + 1)
    points = [f"{kind}{onward} {n}" for kind in ("ioerr", "full", "torn") for onward in ("", "+") for n in numbered]

    def attempt(point: str) -> None:
        kind, number = point.split()
        files.fails_at(int(number), kind.rstrip("+"), onward=kind.endswith("+"))
        failed_once(files, folder / str(next(numbers)), reference)

    try:
        yield points, attempt
    finally:
        files.unregister()


def started(folder: Path, office: Office, shown: list[Record]) -> Any:
    """Run the plan in a new store, note what is shown as durable."""
    folder.mkdir()
    with closing(SqliteStore(folder / "store.sqlite", create=True, connect=CONNECT)) as store:
        return office.plan.options(store=store, clock=office.clock, watch=shown.append).run(RUN_ID, lines=LINES)


def failed_once(files: FaultyFiles, folder: Path, reference: Any) -> None:
    """Run on the disk that fails, then on one that is well. Raises: Violation, NotReached."""
    office = Office()
    shown: list[Record] = []
    try:
        started(folder, office, shown)
    except MilepostError:
        pass
    except Exception as error:
        broken(Harm.STUCK, f"a foreign exception: {error!r}")
    if files.counted < files.at:
        raise NotReached
    files.well()
    holds_and_resumes(folder / "store.sqlite", office, shown, reference)

"""A store's file with a second name (`cp -al`, snapshots by hard links) is two stores to SQLite: neither is opened."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from store_rows import batch, begin

from milepost.errors import StoreLinked, StoreUnavailable
from milepost.stores.sqlite.store import SqliteStore

SUFFIXES = ["", "-wal", "-shm"]


@pytest.fixture
def live(tmp_path: Path) -> Path:
    """A store with a WAL beside it, as a killed process leaves one."""
    path = tmp_path / "live" / "store.sqlite"
    with closing(SqliteStore(path, create=True)):
        kept = {suffix: path.with_name(path.name + suffix).read_bytes() for suffix in SUFFIXES[1:]}
    for suffix, content in kept.items():
        path.with_name(path.name + suffix).write_bytes(content)
    return path


def linked(live: Path, *suffixes: str) -> Path:
    """Give files of a store names in a snapshot of its folder."""
    snapshot = live.parent.with_name("snapshot") / live.name
    snapshot.parent.mkdir(exist_ok=True)
    for suffix in suffixes:
        os.link(f"{live}{suffix}", f"{snapshot}{suffix}")
    return snapshot


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("how", [{"create": False}, {"create": True}, {"create": False, "read_only": True}])
def test_neither_name_is_opened_not_even_to_look(live: Path, how: dict[str, bool]) -> None:
    """To look into a snapshot was enough to roll the live store back."""
    snapshot = linked(live, *SUFFIXES)
    before = contents(live.parent)
    for path in (live, snapshot):
        with pytest.raises(StoreLinked, match=r"store\.sqlite has 2 names"):
            SqliteStore(path, **how)
    assert contents(live.parent) == contents(snapshot.parent) == before


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("is_symlink", [False, True])
def test_each_of_its_files_counts_through_links_too(live: Path, suffix: str, is_symlink: bool) -> None:
    snapshot = linked(live, suffix)
    path = live
    if is_symlink:
        path = live.parent.with_name("link.sqlite")
        path.symlink_to(live)
    with pytest.raises(StoreLinked) as told:
        SqliteStore(path, create=False)
    assert told.value.what == f"store.sqlite{suffix}"
    Path(f"{snapshot}{suffix}").unlink()
    SqliteStore(path, create=False).close()


@pytest.mark.parametrize("suffix", ["", "-wal"])
@pytest.mark.parametrize("write", ["append", "renew"])
def test_a_name_it_gets_while_it_is_open_stops_who_writes(live: Path, suffix: str, write: str) -> None:
    with closing(SqliteStore(live, create=False)) as store:
        lease = begin(store, "r")
        store.append(batch(lease, 1)).wait()
        snapshot = linked(live, suffix)
        works: dict[str, Callable[[], object]] = {
            "append": lambda: store.append(batch(lease, 2)).wait(),
            "renew": lambda: store.renew(lease, "2026-11-02T09:00:00.000000+00:00"),
        }
        with pytest.raises(StoreUnavailable, match=rf"store\.sqlite{suffix} got another name \(a hard link\)"):
            works[write]()
        Path(f"{snapshot}{suffix}").unlink()
    with closing(SqliteStore(live, create=False)) as store:
        assert [line.seq for line in store.records("r")] == ([1, 2] if write == "append" else [1])


def test_the_name_under_which_it_was_made_does_not_count(live: Path) -> None:
    """Its maker may have died, or be about to remove it."""
    os.link(live, live.with_name(f"{live.name}.abc.new"))
    with closing(SqliteStore(live, create=False)) as store:
        lease = begin(store, "r")
        store.append(batch(lease, 1)).wait()
        assert not {finding.check: finding.ok for finding in store.check()}["unfinished files"]

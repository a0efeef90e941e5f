"""A file that an output names is on the disk before the record that says so."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path

import pytest

from milepost import step, task
from milepost.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="which file a descriptor is, Linux says in /proc")


@step
def write(folder: str) -> list[Path]:
    made = Path(folder, "month", "day")
    made.mkdir(parents=True)
    (made / "inner.txt").write_text("inner", encoding="utf-8")
    report = Path(folder, "report.txt")
    report.write_text("report", encoding="utf-8")
    return [report, made]


@task
def writing(folder: str) -> list[Path]:
    return write(folder)


def test_what_an_output_names_is_flushed_before_its_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a power cut leaves an empty file, or none, under a name that a verified record vouches for."""
    flushed: list[str] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        flushed.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    verified: list[set[str]] = []
    with closing(SqliteStore(tmp_path / "store.sqlite", create=True)) as store:
        options = writing.options(store=store, watch=lambda record: _note(record.kind, verified, flushed))
        options.run("r", folder=str(tmp_path))
    names = ("report.txt", "month", "month/day", "month/day/inner.txt", ".")
    assert {os.path.normpath(tmp_path / name) for name in names} <= verified[0]


def _note(kind: str, verified: list[set[str]], flushed: list[str]) -> None:
    if kind == "step_verified":
        verified.append(set(flushed))

"""The witness says what it saw, or nothing: never something between two heads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from milepost.runtime import witness as module
from milepost.runtime.witness import no_witness, witness_folder, witness_of

OLD, NEW = (7, b"\x01" * 32), (8, b"\x02" * 32)
SLOT = 145
"""Bytes of a line and of the line breaks around it."""


@pytest.fixture(autouse=True)
def another_process() -> None:
    """Nothing is known of any file yet."""
    module._lines_of.cache_clear()


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path)}


def remember(environ: dict[str, str], run_id: str, *heads: tuple[int, bytes]) -> None:
    witness = witness_of("store", run_id, environ)
    for head in heads:
        witness.write(*head)
    witness.close()


def remembered(environ: dict[str, str], run_id: str) -> tuple[int, bytes] | None:
    return witness_of("store", run_id, environ).read()


def the_file(environ: dict[str, str]) -> Path:
    (path,) = Path(environ["XDG_STATE_HOME"], "milepost", "witness").iterdir()
    return path


def test_the_newest_head_is_remembered(environ: dict[str, str]) -> None:
    witness = witness_of("store", "r", environ)
    assert witness.read() is None
    for head in (OLD, NEW):
        witness.write(*head)
        assert witness.read() == head
    witness.close()
    assert the_file(environ).stat().st_size == SLOT


@pytest.mark.parametrize("torn_at", [1, 41, 42, 60, 62, 80, 126, 127, 143])
def test_a_witness_that_was_torn_is_none(environ: dict[str, str], torn_at: int) -> None:
    """Half of a new head over an old one would accuse an honest store of having gone back in time."""
    texts = []
    for head in (OLD, NEW):
        remember(environ, "r", head)
        texts.append(the_file(environ).read_bytes())
    the_file(environ).write_bytes(texts[1][:torn_at] + texts[0][torn_at:])
    assert remembered(environ, "r") in (None, OLD)
    the_file(environ).write_bytes(texts[1][:torn_at])
    assert remembered(environ, "r") is None
    remember(environ, "r", NEW)
    assert remembered(environ, "r") == NEW


def test_the_runs_of_a_store_share_a_file_and_keep_their_lines(environ: dict[str, str]) -> None:
    """A file for each would be a fresh inode to be flushed with the first commit of each run, and stay for ever."""
    first, second = witness_of("store", "first", environ), witness_of("store", "second", environ)
    for head in (OLD, NEW):
        first.write(*head)
        second.write(head[0] + 100, head[1])
    assert (first.read(), second.read()) == (NEW, (108, NEW[1]))
    assert the_file(environ).stat().st_size == 2 * SLOT
    assert witness_of("another store", "first", environ).read() is None
    first.close()
    second.close()


def test_what_another_process_appends_is_seen_without_reading_all_again(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(environ, "ours", OLD)
    assert remembered(environ, "ours") == OLD
    ours = module._lines_of(str(the_file(environ)))
    module._lines_of.cache_clear()
    remember(environ, "theirs", NEW)
    remember(environ, "theirs, too", OLD)
    monkeypatch.setattr(module, "_lines_of", lambda path: ours)
    assert remembered(environ, "theirs") == NEW
    the_file(environ).write_bytes(b"-" * SLOT + the_file(environ).read_bytes()[SLOT:])
    assert remembered(environ, "theirs, too") == OLD, "the lines before the newest known one are not read again"


@pytest.mark.parametrize("at", [0, 1, 100, SLOT, SLOT + 60, 3 * SLOT - 1])
def test_a_file_that_was_cut_short_loses_what_was_cut(environ: dict[str, str], at: int) -> None:
    runs = ["a", "b", "c"]
    for run_id in runs:
        remember(environ, run_id, NEW)
    os.truncate(the_file(environ), at)
    assert [remembered(environ, run_id) for run_id in runs] == [
        NEW if at >= number * SLOT else None for number in (1, 2, 3)
    ]
    for run_id in runs:
        remember(environ, run_id, OLD)
    assert [remembered(environ, run_id) for run_id in runs] == [OLD] * 3


@pytest.mark.parametrize("garbage", [b"", b"\0" * 300, b"\xff" * (SLOT - 1), b"\n" * 500, b"9" * (SLOT - 1) + b"\n"])
def test_garbage_in_the_file_is_none_and_harms_no_later_line(environ: dict[str, str], garbage: bytes) -> None:
    remember(environ, "before", OLD)
    the_file(environ).write_bytes(garbage)
    assert remembered(environ, "before") is None
    remember(environ, "after", NEW)
    with the_file(environ).open("ab") as file:
        file.write(garbage)
    remember(environ, "before", NEW)
    assert (remembered(environ, "before"), remembered(environ, "after")) == (NEW, NEW)


def test_another_file_in_its_place_is_read_anew(environ: dict[str, str]) -> None:
    """A state folder that was restored: lines stand elsewhere, and those of before are not taken for theirs."""
    remember(environ, "a", OLD)
    before = the_file(environ).read_bytes()
    remember(environ, "b", NEW)
    assert remembered(environ, "b") == NEW
    the_file(environ).write_bytes(the_file(environ).read_bytes()[SLOT:] + before)
    assert (remembered(environ, "a"), remembered(environ, "b")) == (OLD, NEW)
    remember(environ, "a", NEW)
    assert (remembered(environ, "a"), remembered(environ, "b")) == (NEW, NEW)


@pytest.mark.parametrize("run_id", ["known", "new"])
def test_a_file_that_cannot_be_written_is_read_all_the_same(
    environ: dict[str, str], run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the way to write is closed here: for root no rights are."""
    remember(environ, "known", OLD)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", _refused)
        remember(environ, run_id, NEW)
    assert remembered(environ, "known") == OLD
    path = the_file(environ)
    path.unlink()
    path.mkdir()
    remember(environ, run_id, NEW)
    assert remembered(environ, run_id) is None


def _refused(path: str, *_: object) -> int:
    raise PermissionError(13, "Permission denied", path)


def test_a_witness_has_a_place_only_where_the_user_has_one(tmp_path: Path) -> None:
    """XDG says that relative folders are ignored; a home that is not there is not made at the root of the disk."""
    home = {"HOME": str(tmp_path)}
    usual = tmp_path / ".local" / "state" / "milepost" / "witness"
    assert witness_folder({**home, "XDG_STATE_HOME": "/state"}) == Path("/state/milepost/witness")
    for environ in (home, {**home, "XDG_STATE_HOME": ""}, {**home, "XDG_STATE_HOME": "relative"}):
        assert witness_folder(environ) == usual
    for environ in ({}, {"HOME": "relative"}, {"HOME": str(tmp_path / "nobody")}):
        assert witness_folder(environ) is None
        witness = witness_of("store", "r", environ)
        witness.write(*NEW)
        assert witness.read() is None
        assert "no home folder" in str(no_witness(environ))
        witness.close()
    assert list(tmp_path.iterdir()) == []


def test_why_no_witness_can_be_kept_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    """Rights do not tell: root may write everywhere, and still not into /proc."""
    assert no_witness({"XDG_STATE_HOME": str(tmp_path)}) is None
    assert list(tmp_path.iterdir()) == []
    assert "/proc cannot be written" in str(no_witness({"XDG_STATE_HOME": "/proc"}))
    (tmp_path / "file").write_text("")
    assert f"{tmp_path}/file cannot be written" in str(no_witness({"XDG_STATE_HOME": str(tmp_path / "file" / "in")}))

"""The witness says what it saw, or nothing: never something between two heads."""

from __future__ import annotations

from pathlib import Path

import pytest

from milepost.runtime.witness import Witness, no_witness, witness_folder, witness_of

OLD, NEW = (7, b"\x01" * 32), (8, b"\x02" * 32)


def test_the_newest_head_is_remembered(tmp_path: Path) -> None:
    witness = Witness(tmp_path / "w")
    assert witness.read() is None
    for head in (OLD, NEW):
        witness.write(*head)
        assert witness.read() == head
    witness.close()


@pytest.mark.parametrize("torn_at", [1, 19, 20, 42, 83, 84, 99])
def test_a_witness_that_was_torn_is_none(tmp_path: Path, torn_at: int) -> None:
    """Half of a new head over an old one would accuse an honest store of having gone back in time."""
    path = tmp_path / "w"
    texts = []
    for head in (OLD, NEW):
        witness = Witness(path)
        witness.write(*head)
        witness.close()
        texts.append(path.read_bytes())
    path.write_bytes(texts[1][:torn_at] + texts[0][torn_at:])
    assert Witness(path).read() in (None, OLD)
    path.write_bytes(texts[1][:torn_at])
    assert Witness(path).read() is None


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

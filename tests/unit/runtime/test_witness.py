"""The witness says what it saw, or nothing: never something between two heads."""

from __future__ import annotations

from pathlib import Path

import pytest

from milepost.runtime.witness import Witness

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

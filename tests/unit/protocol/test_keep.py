"""Where bytes are kept: beside their record, or as a file when they are too many for a row."""

from __future__ import annotations

from pathlib import Path

from milepost.protocol.keep import keep_files
from milepost.protocol.ops import Artifact, Keep, KeepFiles


def test_a_list_of_files_too_long_for_a_row_is_kept_as_a_file() -> None:
    """An output may be a folder of thousands: its manifest has the bound of any artifact."""
    kept: list[Artifact] = []
    piece = keep_files(Path("folder"), kept)
    assert next(piece) == KeepFiles(["folder"])
    entries = [{"path": f"folder/{number}", "digest": "0" * 64} for number in range(1000)]
    assert isinstance(piece.send((entries, [])), Keep)
    assert kept == []

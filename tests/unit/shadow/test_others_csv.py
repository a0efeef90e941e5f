"""What a shadow run is compared with, as CSV: what cannot be told apart is refused, not guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from milepost.errors import MisuseError
from milepost.shadow.others import _file


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    """The second would silently stand for both, and a comparison would agree about the wrong one."""
    file = tmp_path / "month.csv"
    file.write_text("item_key,amount,amount\nINV-1,1,2\n", encoding="utf-8")
    with pytest.raises(MisuseError, match="two columns are called 'amount'"):
        _file(file)

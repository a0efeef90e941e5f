"""Whose store is found: the own one upwards, never one that somebody else has put there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from milepost.errors import StoreNotYours, StoreUnavailable
from milepost.stores.locate import locate

OTHER = 12345
"""The number of an account that is neither ours nor root."""


def _planted(folder: Path) -> Path:
    store = folder / ".milepost" / "store.sqlite"
    store.parent.mkdir()
    store.touch()
    return store


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("what", [".milepost", ".milepost/store.sqlite"])
def test_a_store_that_somebody_else_put_above_is_not_obeyed(tmp_path: Path, what: str) -> None:
    """A resume runs the code that its store names: whoever can write to a folder above yours must not choose it."""
    store = _planted(tmp_path)
    os.chown(tmp_path / what, OTHER, OTHER)
    inner = tmp_path / "project"
    inner.mkdir()
    with pytest.raises(StoreNotYours, match=f"user number {OTHER}, neither to you nor to root"):
        locate(inner, {})
    assert locate(inner, {"MILEPOST_STORE": str(store)}) == store


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_link_that_somebody_else_made_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    _planted(tmp_path / "mine")
    (tmp_path / ".milepost").symlink_to("mine/.milepost")
    os.lchown(tmp_path / ".milepost", OTHER, OTHER)
    with pytest.raises(StoreNotYours):
        locate(tmp_path, {})


@contextmanager
def _as_somebody_else() -> Iterator[None]:
    """Be another account meanwhile, where that is possible; else the folder is closed to ourselves."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(OTHER)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


def test_a_store_that_may_not_be_looked_at_is_unavailable() -> None:
    """A colleague's project, closed to others: foreseen, and no bug of ours."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        store = _planted(folder)
        store.parent.chmod(0)
        with _as_somebody_else(), pytest.raises(StoreUnavailable, match="look for a store failed: Permission denied"):
            locate(folder, {})
        store.parent.chmod(0o700)

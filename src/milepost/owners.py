"""Whose a file is: what is found in folders above the working one is obeyed only if it is one's own, or root's.

Others may write there. Changes nothing. Called by `config` and `stores.locate`, before anything found is believed.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable
from pathlib import Path


def foreign_owner(place: Path, *, trusted: Iterable[int] = ()) -> str | None:
    """Return who else owns a file or folder, or the link that leads to it; None when it is mine, root's or trusted.

    Raises: OSError when it is not there or cannot be looked at.
    """
    mine = {0, os.geteuid(), *trusted}
    return next((_named(uid) for uid in (place.lstat().st_uid, place.stat().st_uid) if uid not in mine), None)


def _named(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user number {uid}"

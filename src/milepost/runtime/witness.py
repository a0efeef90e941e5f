"""The witness: outside the store, one small file per run remembers the newest head this machine saw.

It is written after each commit, never before, and not fsynced: so it is never ahead of an honest store, and a
store that went back in time (a restored backup, a rolled-back file system) shows (design §7, Seals).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

_SIZE = 20 + 64 + 16
"""Sequence number, seal, and a check sum: half of a newer text over an older one is none."""


class Witness:
    """Remembers (seq, seal) of one run. A witness that cannot be kept is no reason to stop a run: it is optional."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def read(self) -> tuple[int, bytes] | None:
        """Return the newest remembered (seq, seal); None when there is none or it was torn by a power cut."""
        try:
            text = self._path.read_bytes()[:_SIZE].decode("ascii")
            seq, seal = int(text[:20]), bytes.fromhex(text[20:84])
            return (seq, seal) if text.encode("ascii") == _text(seq, seal) else None
        except (OSError, ValueError):
            return None

    def write(self, seq: int, seal: bytes) -> None:
        """Overwrite what is remembered. Crash: the older or the newer one, or none."""
        try:
            if self._descriptor is None:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.pwrite(self._descriptor, _text(seq, seal), 0)
        except OSError:
            return

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _text(seq: int, seal: bytes) -> bytes:
    text = b"%020d%b" % (seq, seal.hex().encode("ascii"))
    return text + hashlib.sha256(text).hexdigest()[:16].encode("ascii")


def witness_of(store_id: str, run_id: str, environ: Mapping[str, str]) -> Witness:
    """Return the witness of a run on this machine."""
    name = hashlib.sha256(f"{store_id}\0{run_id}".encode()).hexdigest()[:40]
    return Witness(witness_folder(environ) / name)


def witness_folder(environ: Mapping[str, str]) -> Path:
    """Return where witnesses are kept: in the user's state folder (XDG_STATE_HOME, else ~/.local/state)."""
    state = environ.get("XDG_STATE_HOME") or os.path.join(environ.get("HOME") or "/nonexistent", ".local", "state")
    return Path(state) / "milepost" / "witness"

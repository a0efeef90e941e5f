"""The witness: outside the store, one small file per run remembers the newest head this machine saw.

It is written after each commit, never before, and not fsynced: so it is never ahead of an honest store, and a
store that went back in time (a restored backup, a rolled-back file system) shows (design §7, Seals).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

_SIZE = 20 + 64 + 16
"""Sequence number, seal, and a check sum: half of a newer text over an older one is none."""


class Witness:
    """Remembers (seq, seal) of one run. A witness that cannot be kept is no reason to stop a run: it is optional."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._descriptor: int | None = None

    def read(self) -> tuple[int, bytes] | None:
        """Return the newest remembered (seq, seal); None when there is none or it was torn by a power cut."""
        if self._path is None:
            return None
        try:
            text = self._path.read_bytes()[:_SIZE].decode("ascii")
            seq, seal = int(text[:20]), bytes.fromhex(text[20:84])
            return (seq, seal) if text.encode("ascii") == _text(seq, seal) else None
        except (OSError, ValueError):
            return None

    def write(self, seq: int, seal: bytes) -> None:
        """Overwrite what is remembered. Crash: the older or the newer one, or none."""
        if self._path is None:
            return
        try:
            if self._descriptor is None:
                self._descriptor = _opened(self._path)
            os.pwrite(self._descriptor, _text(seq, seal), 0)
        except OSError:
            return

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _opened(path: Path) -> int:
    try:
        return os.open(path, _TO_WRITE, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, _TO_WRITE, 0o600)


_TO_WRITE = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC


def _text(seq: int, seal: bytes) -> bytes:
    text = b"%020d%b" % (seq, seal.hex().encode("ascii"))
    return text + hashlib.sha256(text).hexdigest()[:16].encode("ascii")


def witness_of(store_id: str, run_id: str, environ: Mapping[str, str]) -> Witness:
    """Return the witness of a run on this machine; one that remembers nothing where there is no place for it."""
    folder = witness_folder(environ)
    name = hashlib.sha256(f"{store_id}\0{run_id}".encode()).hexdigest()[:40]
    return Witness(None if folder is None else folder / name)


def witness_folder(environ: Mapping[str, str]) -> Path | None:
    """Return where witnesses are kept: in the user's state folder (XDG_STATE_HOME, else ~/.local/state).

    None without a home. A relative XDG_STATE_HOME is ignored
    (https://specifications.freedesktop.org/basedir-spec/latest/), and a home that is not there is not made.
    """
    state, home = environ.get("XDG_STATE_HOME", ""), environ.get("HOME", "")
    if not os.path.isabs(state):
        if not (os.path.isabs(home) and os.path.isdir(home)):
            return None
        state = f"{home}/.local/state"
    return Path(state, "milepost", "witness")


def no_witness(environ: Mapping[str, str]) -> str | None:
    """Return why no witness can be written on this machine; None when one can. Leaves nothing behind."""
    folder = witness_folder(environ)
    if folder is None:
        return "there is no home folder, and XDG_STATE_HOME is no absolute path"
    place = next(place for place in (folder, *folder.parents) if place.exists())
    try:
        tempfile.TemporaryFile(dir=place).close()  # rights do not tell: root has them in /proc, too
    except OSError as error:
        return f"{place} cannot be written: {error.strerror}"
    return None

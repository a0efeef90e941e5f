"""The witness: outside the store, a small file per store remembers the newest head this machine saw of each run.

A run has one line there, appended once and overwritten after each commit, never before, and not fsynced: so it is
never ahead of an honest store, and a store that went back in time (a restored backup, a rolled-back file system)
shows (design §7, Seals). Lines never move, so nobody locks the file and nobody is waited for.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

_NAME_SIZE = 40
_SIZE = 1 + _NAME_SIZE + 1 + 20 + 1 + 64 + 1 + 16 + 1
"""Name, sequence number, seal, and a check sum: half of a newer line over an older one is none. In line breaks both
before and behind, so that what is torn beside it does not matter."""
_FILES_MAX = 8
"""Files whose lines a process knows at once; of others it reads all again."""


class Witness:
    """Remembers (seq, seal) of one run. A witness that cannot be kept is no reason to stop a run: it is optional."""

    def __init__(self, path: str | None, name: bytes) -> None:
        self._path, self._name = path, name
        self._descriptor: int | None = None
        self._place = 0

    def read(self) -> tuple[int, bytes] | None:
        """Return the newest remembered (seq, seal); None when there is none or it was torn by a power cut."""
        if self._path is None:
            return None
        try:
            with open(self._path, "rb") as file:
                place = _lines_of(self._path).find(file, self._name)
                if place is None:
                    return None
                file.seek(place)
                line = file.read(_SIZE)
                _, seq, seal, _ = line.split()
                seen = int(seq), bytes.fromhex(seal.decode("ascii"))
                return seen if line == _line(self._name, *seen) else None
        except (OSError, ValueError):
            return None

    def write(self, seq: int, seal: bytes) -> None:
        """Overwrite what is remembered. Crash: the older or the newer one, or none."""
        if self._path is None:
            return
        line = _line(self._name, seq, seal)
        try:
            if self._descriptor is None:
                self._place = self._found(self._path, line)
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
            os.pwrite(self._descriptor, line, self._place)
        except OSError:
            return

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None  # first: interrupted, it is closed again
        if descriptor is not None:
            os.close(descriptor)

    def _found(self, path: str, line: bytes) -> int:
        """Return where the run's line stands; append it when there is none. Crash: as `write`."""
        try:
            with open(path, "rb") as file:
                place = _lines_of(path).find(file, self._name)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            place = None
        return _appended(path, line) if place is None else place


class Lines:
    """Where each run's line begins in one file, as far as this process has read it.

    Threads share it without a lock: what one has learned is replaced whole, and what two learn at once is the same.
    """

    def __init__(self) -> None:
        self._known: tuple[dict[bytes, int], bytes, int] = {}, b"", 0

    def find(self, file: BinaryIO, name: bytes) -> int | None:
        """Return where a run's line begins: read on from the last one known, or from the start in another file."""
        places, last, at = self._known
        file.seek(at)
        if file.read(len(last)) != last:
            places, last, at = {}, b"", 0
        file.seek(at)
        end = at
        for line in file:
            if len(line) == _SIZE - 1:
                last, at = line[:_NAME_SIZE], end
                places[last] = at - 1  # with the line break before it
            end += len(line)
        self._known = places, last, at
        return places.get(name)


@lru_cache(maxsize=_FILES_MAX)
def _lines_of(path: str) -> Lines:
    """Return what this process knows of the lines in a file."""
    return Lines()


def _appended(path: str, line: bytes) -> int:
    """Append a line in one call, whole among those of other processes; return its place. Raises: OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.write(descriptor, line) != len(line):
            raise OSError(f"no room in {path}")
        return os.lseek(descriptor, 0, os.SEEK_CUR) - len(line)
    finally:
        os.close(descriptor)


def _line(name: bytes, seq: int, seal: bytes) -> bytes:
    text = b"\n%b %020d %b " % (name, seq, seal.hex().encode("ascii"))
    return b"%b%b\n" % (text, hashlib.sha256(text).hexdigest()[:16].encode("ascii"))


def witness_of(store_id: str, run_id: str, environ: Mapping[str, str]) -> Witness:
    """Return the witness of a run on this machine; one that remembers nothing where there is no place for it."""
    return Witness(file_of(store_id, environ), _name(run_id).encode("ascii"))


def file_of(store_id: str, environ: Mapping[str, str]) -> str | None:
    """Return the file of a store's witnesses, there or not; None where there is no place for one."""
    folder = _folder(environ)
    return None if folder is None else f"{folder}/{_name(store_id)}"


def _name(of: str) -> str:
    return hashlib.sha256(of.encode()).hexdigest()[:_NAME_SIZE]


def witness_folder(environ: Mapping[str, str]) -> Path | None:
    """Return where witnesses are kept: in the user's state folder (XDG_STATE_HOME, else ~/.local/state).

    None without a home. A relative XDG_STATE_HOME is ignored
    (https://specifications.freedesktop.org/basedir-spec/latest/), and a home that is not there is not made.
    """
    folder = _folder(environ)
    return None if folder is None else Path(folder)


def _folder(environ: Mapping[str, str]) -> str | None:
    state, home = environ.get("XDG_STATE_HOME", ""), environ.get("HOME", "")
    if not os.path.isabs(state):
        if not (os.path.isabs(home) and os.path.isdir(home)):
            return None
        state = f"{home}/.local/state"
    return f"{state}/milepost/witness"


def no_witness(environ: Mapping[str, str]) -> str | None:
    """Return why no witness can be written on this machine; None when one can. Leaves nothing behind."""
    folder = witness_folder(environ)
    if folder is None:
        return "there is no home folder, and XDG_STATE_HOME is no absolute path"
    import tempfile  # here: no run needs it

    place = folder
    try:
        place = next(place for place in (folder, *folder.parents) if place.exists())
        tempfile.TemporaryFile(dir=place).close()  # rights do not tell: root has them in /proc, too
    except OSError as error:
        return f"{place} cannot be written: {error.strerror}"
    return None

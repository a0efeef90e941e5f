"""Artifacts as files named by the SHA-256 of their bytes, under `<folder>/<two digits>/<digest>`.

A file appears under its name whole and durable or not at all; what is read is checked against the name.
Knows no run and no record: who points at a file is the store's business. Called by the runtime, the stores'
pruning and `doctor`.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from milepost.artifacts.durable import make_folder, sync
from milepost.errors import StoreUnavailable

PIECE_BYTES = 1024 * 1024
"""Files are copied in pieces of this size; memory does not grow with the artifact."""
UNFINISHED_PREFIX = ".unfinished-"

_DIGEST = re.compile(r"[0-9a-f]{64}")


class ArtifactMissing(FileNotFoundError):
    """No file of this digest is there."""

    def __init__(self, digest: str) -> None:
        super().__init__(errno.ENOENT, "no artifact file of this digest", digest)
        self.digest = digest


class ArtifactDamaged(Exception):
    """The file of this digest holds other bytes; the runtime knows whose record that concerns."""

    def __init__(self, digest: str, reason: str) -> None:
        super().__init__(f"artifact {digest}: {reason}")
        self.digest = digest
        self.reason = reason


class ArtifactFiles:
    """The artifact files of one store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, digest: str) -> Path:
        """Return where the file of a digest is. Raises: ArtifactDamaged when it is no digest (`../x`)."""
        if not _DIGEST.fullmatch(digest):
            raise ArtifactDamaged(digest[:80], "this is not a SHA-256 digest in hex")
        return self.folder / digest[:2] / digest

    def write(self, data: bytes | Iterable[bytes]) -> tuple[str, int]:
        """Keep bytes, given whole or in pieces; return digest and size. They are durable then.

        Crash: nothing under the digest (perhaps an unfinished file), or the whole artifact.
        Raises: StoreUnavailable when the disk is full or fails; nothing is left then.
        """
        with _translated("write artifact", self.folder):
            make_folder(self.folder)
            with _unfinished(self.folder) as (file, name):
                digest, size = _copy((data,) if isinstance(data, bytes) else data, file)
                os.fsync(file.fileno())
                self._place(name, digest, size)
        return digest, size

    def copy_in(self, source: Path) -> tuple[str, int]:
        """Keep a regular file's content; the digest is of the bytes copied.

        Crash: as `write`. Raises: OSError from the source, ValueError when it is no regular file; StoreUnavailable.
        """
        # Without O_NONBLOCK, opening a FIFO would wait for a writer for ever.
        handle = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(handle, "rb", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise ValueError(f"{source} is not a regular file")
            return self.write(_pieces(file))

    def read(self, digest: str) -> bytes:
        """Return an artifact's bytes, checked. Raises: ArtifactMissing, ArtifactDamaged, StoreUnavailable."""
        with self._opened(digest) as file:
            data = file.read()
        _expect(digest, hashlib.sha256(data).hexdigest())
        return data

    def check(self, digest: str) -> None:
        """See that an artifact is there and whole. Raises: ArtifactMissing, ArtifactDamaged, StoreUnavailable."""
        with self._opened(digest) as file:
            _expect(digest, hashlib.file_digest(file, "sha256").hexdigest())

    def copy_out(self, digest: str, target: Path) -> None:
        """Put an artifact's bytes at a new path, checked on the way; never over something that is there.

        Crash: nothing at the target (perhaps an unfinished file beside it), or the whole file.
        Raises: FileExistsError, ArtifactMissing, ArtifactDamaged, StoreUnavailable.
        """
        with self._opened(digest) as source:
            put_out(_pieces(source), digest, target)

    def remove(self, digest: str) -> None:
        """Delete an artifact's file if it is there. Crash: there or not. Raises: StoreUnavailable."""
        with _translated("remove artifact", self.folder):
            self.path(digest).unlink(missing_ok=True)

    def size(self, digest: str) -> int | None:
        """Return the size of a digest's file, None when it is not there."""
        try:
            found = self.path(digest).lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def sizes(self) -> dict[str, int]:
        """Return digest and size of every file that is there."""
        found = {path.name: self.size(path.name) for path in self.folder.glob("??/*") if _DIGEST.fullmatch(path.name)}
        return {digest: size for digest, size in found.items() if size is not None}

    def unfinished(self) -> list[Path]:
        """Return the files that processes which died left unfinished, or that are being written."""
        return sorted(self.folder.glob(f"{UNFINISHED_PREFIX}*"))

    def _place(self, name: str, digest: str, size: int) -> None:
        """Give a finished file its name, unless a good file of that name is there."""
        path = self.path(digest)
        make_folder(path.parent)
        if self.size(digest) != size or not self._is_good(digest):
            os.rename(name, path)
        sync(path.parent)

    def _is_good(self, digest: str) -> bool:
        try:
            self.check(digest)
        except (ArtifactMissing, ArtifactDamaged):
            return False
        return True

    @contextmanager
    def _opened(self, digest: str) -> Iterator[FileIO]:
        path = self.path(digest)
        with _translated("read artifact", self.folder):
            try:
                handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            except FileNotFoundError:
                raise ArtifactMissing(digest) from None
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENXIO):
                    raise ArtifactDamaged(digest, "it is a link or a socket, not a regular file") from None
                raise
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                os.close(handle)
                raise ArtifactDamaged(digest, "it is not a regular file")
            with open(handle, "rb", buffering=0) as file:
                yield file


def put_out(pieces: Iterable[bytes], digest: str, target: Path) -> None:
    """Write bytes of a known digest to a new path; never over something that is there.

    Crash: nothing at the target (perhaps an unfinished file beside it), or the whole file.
    Raises: FileExistsError, ArtifactDamaged, StoreUnavailable.
    """
    with _translated("copy artifact out", target):
        make_folder(target.parent, mode=0o777)
        with _unfinished(target.parent, mode=0o666) as (file, name):
            found, _ = _copy(pieces, file)
            _expect(digest, found)
            os.fsync(file.fileno())
            _name_without_replacing(name, target)
        sync(target.parent)


@contextmanager
def _translated(operation: str, location: Path) -> Iterator[None]:
    """Turn OS errors into StoreUnavailable, except those that are answers."""
    try:
        yield
    except (ArtifactMissing, FileExistsError):
        raise
    except OSError as error:
        reason = f"{error.strerror or error} ({error.filename})" if error.filename else str(error)
        raise StoreUnavailable(location=location, operation=operation, reason=reason) from error


@contextmanager
def _unfinished(folder: Path, mode: int = 0o600) -> Iterator[tuple[BinaryIO, str]]:
    """Open a new file in the folder that is removed at the end unless it was given another name."""
    name = str(folder / f"{UNFINISHED_PREFIX}{os.urandom(8).hex()}")
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    try:
        with open(handle, "wb", buffering=0) as file:
            yield file, name
    finally:
        Path(name).unlink(missing_ok=True)


def _name_without_replacing(name: str, target: Path) -> None:
    """Give a finished file its name; unlike rename, refuse what is there. Raises: FileExistsError."""
    try:
        os.link(name, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links; then between look and rename somebody may come
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "there is something already", str(target)) from None
        os.rename(name, target)


def _copy(pieces: Iterable[bytes], file: BinaryIO) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
        rest = memoryview(piece)
        while rest:
            rest = rest[file.write(rest) :]
    return digest.hexdigest(), size


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(PIECE_BYTES):
        yield piece


def _expect(digest: str, found: str) -> None:
    if found != digest:
        raise ArtifactDamaged(digest, f"the file's bytes have digest {found}")

"""What a disk may hold after a power cut: a list of file operations, and which of them had reached it by then.

Pure. Data of a file is safe once the file was synced, a name once its folder was; until then each operation may be
there, missing or half there, whatever the order, in sectors. The harness `power_cut` opens what comes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from os.path import dirname
from typing import Literal

from shim import Call

SECTOR = 512
FOLDER = -1
"""Stands for a folder where a name has the number of a file."""

Kind = Literal["create", "mkdir", "write", "size", "move", "link", "unlink"]


@dataclass(frozen=True)
class Change:
    """One operation: `file` numbers the file it concerns, `path` (and `path2`) are names below the folder traced."""

    index: int  # of the call
    kind: Kind
    path: str
    file: int = FOLDER
    path2: str = ""
    offset: int = 0
    data: bytes = b""
    durable_at: int | None = None  # index of the call that made it safe

    @property
    def is_name(self) -> bool:
        return self.kind in ("create", "mkdir", "move", "link", "unlink")

    @property
    def folder(self) -> str:
        """Return the folder whose sync makes this name safe."""
        return dirname(self.path2 or self.path)


class Traced:
    """Reads recorded calls into changes. Every path is relative to the root; what lies outside is left out."""

    def __init__(self, calls: Sequence[Call], root: str) -> None:
        self._root = root
        self._numbers: dict[int, int] = {}  # inode -> number of the file that has it now
        self._names: dict[str, int] = {}
        self.changes: list[Change] = []
        for index, call in enumerate(calls):
            if call.result >= 0:
                self._read(index, call)

    def _inside(self, path: str) -> str | None:
        if not path.startswith("/"):
            return path
        return path[len(self._root) :].lstrip("/") if path.startswith(self._root) else None

    def _read(self, index: int, call: Call) -> None:
        path = self._inside(call.path)
        if path is None or path.endswith("-shm"):  # shared memory of SQLite: whoever opens first makes it anew
            return
        if call.name == "fsync":
            self._synced(index, call, path)
        elif call.name in ("rename", "link", "unlink", "mkdir"):
            self._named(index, call, path)
        elif call.name in ("create", "cut", "write", "pwrite", "ftruncate"):
            self._filled(index, call, path)

    def _named(self, index: int, call: Call, path: str) -> None:
        path2 = self._inside(call.path2) or ""
        kind: Kind = "move" if call.name == "rename" else call.name  # type: ignore[assignment]  # the four names above
        number = self._names.get(path, FOLDER)
        self.changes.append(Change(index, kind, path, number, path2))
        if kind in ("move", "link"):
            self._names[path2] = number
        if kind in ("move", "unlink"):
            self._names.pop(path, None)

    def _filled(self, index: int, call: Call, path: str) -> None:
        if call.name == "create":
            number = self._numbers[call.inode] = self._names[path] = index
            self.changes.append(Change(index, "create", path, number))
            return
        number = self._numbers.setdefault(call.inode, index)
        kind: Kind = "size" if call.name in ("cut", "ftruncate") else "write"
        offset = 0 if call.name == "cut" else call.offset
        self.changes.append(Change(index, kind, path, number, "", offset, call.data))

    def _synced(self, index: int, call: Call, path: str) -> None:
        number = self._numbers.get(call.inode)
        for place, change in enumerate(self.changes):
            if change.durable_at is not None:
                continue
            if change.folder == path if change.is_name else change.file == number:
                self.changes[place] = replace(change, durable_at=index)


def cut(changes: Sequence[Change], prefix: int, always: Iterable[str]) -> tuple[list[Change], list[Change]]:
    """Return what is surely on the disk when the power goes after so many calls, and what may be."""
    done = [change for change in changes if change.index < prefix]
    names = tuple(always)
    sure = [c for c in done if (c.durable_at is not None and c.durable_at < prefix) or c.path.startswith(names)]
    pending = [c for c in done if c not in sure]
    return sure, pending


def variants(changes: Sequence[Change], prefix: int, always: Iterable[str]) -> Iterator[str]:
    """Name the bounded states of a prefix: all, only what is sure; one pending change more, less, torn, hollow."""
    _, pending = cut(changes, prefix, always)
    yield "all"
    if pending:
        yield "sure"
    for change in pending:
        yield f"drop {change.index}"
        yield f"add {change.index}"
        if change.kind == "write":
            if grew(changes, change):
                yield f"hollow {change.index}"
            if crosses_sector(change):
                yield f"tear {change.index}"


def grew(changes: Sequence[Change], change: Change) -> bool:
    """Say whether a write lies beyond all its file had: only there may a disk keep the length without the bytes."""
    earlier = [c for c in changes if c.file == change.file and not c.is_name and c.index < change.index]
    cut_at = max((place for place, c in enumerate(earlier) if c.kind == "size"), default=0)
    return change.offset >= max((c.offset + len(c.data) for c in earlier[cut_at:]), default=0)


def crosses_sector(change: Change) -> bool:
    return change.offset // SECTOR != (change.offset + len(change.data) - 1) // SECTOR


def torn(change: Change) -> Change:
    """Return the first half of a write, up to the end of a sector."""
    end = (change.offset + len(change.data) // 2) // SECTOR * SECTOR
    return replace(change, data=change.data[: max(end - change.offset, SECTOR - change.offset % SECTOR)])


def hollow(change: Change) -> Change:
    """Return the write as a disk leaves it that grew the file and never filled it."""
    return replace(change, data=bytes(len(change.data)))


def chosen(changes: Sequence[Change], prefix: int, variant: str, always: Iterable[str]) -> list[Change]:
    """Return the changes that are on the disk in a variant, in their order."""
    sure, pending = cut(changes, prefix, always)
    what, _, number = variant.partition(" ")
    one = [c for c in pending if number and c.index == int(number)]
    others = [c for c in pending if c not in one]
    found = {
        "all": lambda: [*sure, *pending],
        "sure": lambda: sure,
        "drop": lambda: [*sure, *others],
        "add": lambda: [*sure, *one],
        "tear": lambda: [*sure, *others, *map(torn, one)],
        "hollow": lambda: [*sure, *others, *map(hollow, one)],
    }[what]()
    return sorted(found, key=lambda change: change.index)


def tree(changes: Iterable[Change]) -> dict[str, bytes | None]:
    """Carry changes out on an empty folder; return the bytes of every file, None for a folder."""
    names: dict[str, int] = {}
    contents: dict[int, bytearray] = {}
    for change in changes:
        if change.is_name:
            _rename(names, change)
        else:
            _fill(contents.setdefault(change.file, bytearray()), change)
    return {
        path: None if number == FOLDER else bytes(contents.get(number, b""))
        for path, number in sorted(names.items())
        if _reachable(path, names)
    }


def _rename(names: dict[str, int], change: Change) -> None:
    if change.kind in ("move", "unlink"):
        names.pop(change.path, None)
    if change.kind != "unlink":
        names[change.path2 or change.path] = change.file


def _fill(content: bytearray, change: Change) -> None:
    end = change.offset + (len(change.data) if change.kind == "write" else 0)
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    if change.kind == "size":
        del content[change.offset :]
    content[change.offset : end] = change.data


def _reachable(path: str, names: dict[str, int]) -> bool:
    above = dirname(path)
    return not above or (names.get(above) == FOLDER and _reachable(above, names))

"""The artifacts of one run: kept as rows or files, loaded checked, small outputs read ahead of the plan."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakMethod

from milepost.artifacts.files import ArtifactDamaged, ArtifactFiles, ArtifactMissing
from milepost.errors import CorruptRecord
from milepost.protocol.keep import beside
from milepost.protocol.ops import Artifact
from milepost.protocol.snapshot import Snapshot
from milepost.records.canonical import digest
from milepost.records.model import Pointer
from milepost.stores.contract import Store

AHEAD = 256
"""Small outputs read together with the one that is asked for."""


class Artifacts:
    """Keeps and loads. `flush` makes what was appended readable; without it only durable artifacts are asked for.

    It is a method of the journal that holds these, so it is held weakly: a run that is over is freed at once.
    """

    def __init__(
        self,
        store: Store,
        run_id: str,
        *,
        snapshot: Snapshot,
        flush: Callable[[], None] | None = None,
        checked: dict[str, bytes] | None = None,
    ) -> None:
        self._store, self._run_id, self._snapshot = store, run_id, snapshot
        self._flush = WeakMethod(flush) if flush is not None else None
        self.files = ArtifactFiles(store.folder) if store.folder is not None else None
        self._checked = checked or {}  # read and checked already; each is asked for once, as a rule
        self._ahead: dict[str, bytes] = {}
        self._order: list[str] | None = None
        self._place: dict[str, int] = {}
        self._passed = 0  # outputs before this one were read ahead already

    def keep(self, data: bytes, media_type: str) -> Artifact:
        """Make bytes durable as a file, or carry them in the store when it has no folder.

        Crash: a file nothing points at, which `doctor` lists.
        """
        if self.files is None:
            return beside(data, media_type)
        name, size = self.files.write(data)
        return Artifact(Pointer(name, size, media_type, "file"), None)

    def load(self, pointer: Pointer, what: str) -> bytes:
        """Return an artifact's bytes, checked. Raises: CorruptRecord naming what is missing or altered."""
        try:
            if pointer.where == "file" and self.files is not None:
                return self.files.read(pointer.digest)
            return self._row(pointer)
        except (ArtifactMissing, ArtifactDamaged) as error:
            raise CorruptRecord(run_id=self._run_id, record=f"the {what}", reason=str(error)) from error

    def _row(self, pointer: Pointer) -> bytes:
        checked = self._checked.pop(pointer.digest, None)
        if checked is not None:
            return checked
        data = self._ahead.get(pointer.digest)
        if data is None:
            data = self._read(pointer.digest)
        if data is None and self._flush is not None and (flush := self._flush()) is not None:
            flush()
            data = self._read(pointer.digest)
        return intact(data, pointer)

    def _read(self, wanted: str) -> bytes | None:
        digests = self._following(wanted)
        rows = self._store.artifacts(self._run_id, digests)
        found = {key: row.data for key, row in rows.items() if row.data is not None}
        if len(digests) > 1:
            self._ahead = found
        return found.get(wanted)

    def _following(self, wanted: str) -> list[str]:
        """Return the digest and those the plan will ask for next, in the order they were recorded."""
        if self._order is None:
            self._order = list(dict.fromkeys(p.digest for p in _outputs(self._snapshot) if p.where == "row"))
            self._place = {name: index for index, name in enumerate(self._order)}
        index = self._place.get(wanted, -1)
        if index < self._passed:
            return [wanted]
        self._passed = index + AHEAD
        return self._order[index : self._passed]


def intact(data: bytes | None, pointer: Pointer) -> bytes:
    """Return the bytes of a row if they are those recorded. Raises: ArtifactMissing, ArtifactDamaged."""
    if data is None:
        raise ArtifactMissing(pointer.digest)
    if digest(data) != pointer.digest:
        raise ArtifactDamaged(pointer.digest, "its bytes do not have the recorded digest")
    return data


def _outputs(snapshot: Snapshot) -> list[Pointer]:
    verified = [state.verified.output for state in snapshot.steps.values() if state.verified]
    applied = [state.applied.result for state in snapshot.effects.values() if state.applied and state.applied.result]
    return [*verified, *applied]

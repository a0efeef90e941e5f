"""Finds artifacts by their digest. The small ones lie in rows of the journal, which have no index by digest.

Instead a map is made of a run's rows when its artifacts are first asked for, in one scan that costs about what
reading the journal costs, and is carried on from where it ended. Called by SqliteStore.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence

from milepost.stores.contract import StoredArtifact
from milepost.stores.sqlite import rows
from milepost.stores.sqlite.connection import Reader
from milepost.stores.sqlite.queries import SQL

RUNS_MAX = 64
"""Runs whose maps are kept; the one mapped first is forgotten then."""


class CarriedArtifacts:
    """Reads artifacts of runs; remembers which record carries which digest."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._places: dict[str, tuple[int, dict[str, int]]] = {}  # run id -> (read up to, digest -> seq)
        self._lock = threading.Lock()

    def read(self, run_id: str, digests: Sequence[str]) -> Mapping[str, StoredArtifact]:
        """Return those of the artifacts that are there. Raises: StoreUnavailable."""
        with self._lock:
            places = self._mapped(run_id)
            carried = [places[digest] for digest in digests if digest in places]
            rest = [digest for digest in digests if digest not in places]
        wanted = {"run_id": run_id, "seqs": json.dumps(carried), "digests": json.dumps(rest)}
        found = self._reader.all("read artifacts", SQL["artifacts"], wanted)
        return {row[0]: rows.artifact(row) for row in found}

    def learn(self, run_id: str, read_to: int, places: dict[str, int]) -> None:
        """Take a run's map up to a record from its outline, for which it was read anyway."""
        if read_to:
            with self._lock:
                self._remember(run_id, read_to, places)

    def _mapped(self, run_id: str) -> dict[str, int]:
        """Carry the run's map on to its newest record."""
        read_to, places = self._places.get(run_id, (0, {}))
        new = self._reader.all("read artifacts", SQL["carried"], (run_id, read_to))
        if new:
            places.update(new)
            self._remember(run_id, new[-1][1], places)
        return places

    def _remember(self, run_id: str, read_to: int, places: dict[str, int]) -> None:
        self._places[run_id] = (read_to, places)
        if len(self._places) > RUNS_MAX:
            del self._places[next(iter(self._places))]

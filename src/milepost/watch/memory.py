"""What a watch must not forget when it is started anew: how often it has started each run. One small file.

Only the holder of the watch's lock writes it.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

from milepost.stores.sqlite.faults import translated
from milepost.watch.tries import Tries


class Memory:
    """The tries by run id, as in the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tries = _read(path)

    def get(self, run_id: str) -> Tries | None:
        return self._tries.get(run_id)

    def put(self, run_id: str, tries: Tries | None) -> None:
        """Remember the tries of a run, or forget them. Crash: the file of before, or the new one, whole.

        Not flushed: after a power cut the count may be older, and the bound is reached a little later.
        Raises: StoreUnavailable.
        """
        if self._tries.get(run_id) == tries:
            return
        if tries is None:
            self._tries.pop(run_id)
        else:
            self._tries[run_id] = tries
        self._write()

    def keep_only(self, run_ids: set[str]) -> None:
        """Forget runs that have ended. Crash: as `put`. Raises: StoreUnavailable."""
        if self._tries.keys() - run_ids:
            self._tries = {run_id: found for run_id, found in self._tries.items() if run_id in run_ids}
            self._write()

    def _write(self) -> None:
        fresh = self.path.with_name(f"{self.path.name}.fresh")
        text = json.dumps({run_id: asdict(found) for run_id, found in self._tries.items()})
        with translated(str(self.path), "remember starts"):
            fresh.touch(mode=0o600)
            fresh.write_text(text, encoding="utf-8")
            os.replace(fresh, self.path)


def _read(path: Path) -> dict[str, Tries]:
    """Read the file; one that is not there, or that somebody spoilt, remembers nothing."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return {run_id: Tries(**found) for run_id, found in data.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}

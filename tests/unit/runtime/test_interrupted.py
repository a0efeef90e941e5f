"""A signal handler that raises (Ctrl-C, a time limit) while a run begins, works or ends: the run is let go of."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from interrupts import Interrupts, in_a_thread

from milepost import step, task
from milepost.runtime.leases import active_runs
from milepost.runtime.scope import current
from milepost.stores.memory import MemoryStore
from milepost.stores.sqlite.store import SqliteStore


@step
def interrupted_step(name: str) -> str:
    return name


@task
def interrupted_plan(name: str) -> str:
    return interrupted_step(name)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a file that was not in its `with` yet
def test_a_run_that_is_interrupted_at_any_place_goes_on_elsewhere(tmp_path: Path) -> None:
    """Neither kept alive nor held, and no call of it under way for ever."""
    store, environ = SqliteStore(tmp_path / "store.sqlite", create=True), {"XDG_STATE_HOME": str(tmp_path)}
    runs = interrupted_plan.options(store=store, environ=environ, handle_signals=False)
    interrupts = Interrupts("/milepost/runtime/", "/milepost/api.py")
    while interrupts.once_more(run := partial(runs.run, f"run {interrupts.count}", "Ada")):
        assert active_runs() == [], interrupts.where
        assert current.get() is None, interrupts.where
        assert in_a_thread(run), interrupts.where
    assert interrupts.count > 100
    store.close()


class Interrupted(MemoryStore):
    """Is interrupted once, as it commits what a run waits for, and cannot tell what became of that."""

    left = 1

    def flush(self) -> None:
        super().flush()
        if any(run.records for run in self._runs.values()) and self.left:
            self.left -= 1
            self._bad.update({(run_id, run.token): "the commit was interrupted" for run_id, run in self._runs.items()})
            raise KeyboardInterrupt


def test_who_interrupts_a_commit_is_told_of_that_and_the_next_resume_reads_what_there_is() -> None:
    """Not of a store that would be unavailable: it is there, only this run reads it again."""
    store = Interrupted()
    runs = interrupted_plan.options(store=store, handle_signals=False)
    with pytest.raises(KeyboardInterrupt):
        runs.run("r", "Ada")
    assert runs.resume("r") == "Ada"

"""The live view of a run under way, on stderr: redrawn on a terminal, one line per event without one.

Fed by the run with durable records only: nothing is shown as verified before it is. Called by `carry_out`.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from milepost.cli.output import UNWRITABLE, is_terminal, note
from milepost.cli.seen import STOPPING, Seen, is_stopping
from milepost.records.model import (
    HeartbeatRecorded,
    OutputRecorded,
    Record,
    RunResumed,
    RunStarted,
    SpentRecorded,
    VersionsNoted,
    WaitRecorded,
)
from milepost.records.shown import inert
from milepost.views.summaries import summary
from milepost.views.words import clock_time

if TYPE_CHECKING:
    from rich.text import Text

REDRAW_S = 0.25
"""Seconds between two looks at what is under way."""
_NOT_SAID = (RunStarted, RunResumed, HeartbeatRecorded, OutputRecorded, SpentRecorded, WaitRecorded)


def view(*, plain: bool) -> View:
    """Return the view that fits where stderr goes."""
    return Drawn() if is_terminal(plain=plain) else View()


class View:
    """Plain lines; also the base of the drawn one. One thread of its own looks whether the run is stopping."""

    def __init__(self) -> None:
        self.seen = Seen()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_looking, name="milepost-view", daemon=True)
        self._said_stopping = False

    def watch(self, record: Record) -> None:
        """Hear of a record that is durable now."""
        self.seen.hear(record)
        self._said(record)

    def waiting(self, moment: str, reason: str) -> None:
        """Hear that the run waits for a time."""
        self.seen.wait_for(moment, reason)
        self._said_waiting(moment, reason)

    def _said(self, record: Record) -> None:
        if not isinstance(record, _NOT_SAID):
            path = getattr(record, "path", "")
            note(f"  {path}: {summary(record)}" if path else f"  {summary(record)}")

    def _said_waiting(self, moment: str, reason: str) -> None:
        note(f"  waits until {clock_time(moment)}: {reason}")

    def _look(self) -> None:
        if is_stopping() and not self._said_stopping:
            self._said_stopping = True
            note(f"  {STOPPING}")

    def _keep_looking(self) -> None:
        while not self._over.wait(REDRAW_S):
            self._look()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()


class Drawn(View):
    """Redrawn in place; what the user's code prints scrolls above it."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)

    def _said(self, record: Record) -> None:
        """Say above what is drawn what nobody would miss there: that it is not what ran before."""
        if isinstance(record, VersionsNoted):
            with suppress(*UNWRITABLE):
                self._live.console.print(inert(f"  {summary(record)}"), markup=False, highlight=False)

    def _said_waiting(self, moment: str, reason: str) -> None:
        return None

    def _look(self) -> None:
        with suppress(*UNWRITABLE):
            self._live.update(self._text(), refresh=True)

    def _text(self) -> Text:
        from rich.text import Text

        return Text("\n".join(inert(line) for line in self.seen.lines()), no_wrap=True, overflow="ellipsis")

    def __enter__(self) -> Self:
        self._live.start()
        return super().__enter__()

    def __exit__(self, *how: Any) -> None:
        super().__exit__(*how)
        with suppress(*UNWRITABLE):
            self._live.stop()

"""Tells people beside the watch's own round, in a thread: no slow service keeps a run from being started."""

from __future__ import annotations

import threading
from datetime import datetime

from milepost.errors import MilepostError
from milepost.notify.delivery import Delivery, Notifier


class Telling:
    """One delivery at a time. `next_at`: when there is something to tell again, as far as is known."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier
        self._thread: threading.Thread | None = None
        self._delivery: Delivery | None = None
        self.next_at: datetime | None = None

    @property
    def is_busy(self) -> bool:
        return self._thread is not None

    def start(self) -> None:
        """Begin a delivery, if none is under way."""
        if self._thread is None:
            self._delivery = None
            self._thread = threading.Thread(target=self._deliver, name="milepost-telling", daemon=True)
            self._thread.start()

    def finished(self) -> Delivery | None:
        """Return what the last delivery brought, once it is over."""
        if self._thread is None or self._thread.is_alive():
            return None
        self._thread, delivery = None, self._delivery
        return delivery

    def _deliver(self) -> None:
        try:
            self._delivery = self._notifier.deliver()
            self.next_at = self._notifier.next_moment()
        except MilepostError as error:
            self._delivery = Delivery(failed={"outbox": str(error)})

"""What unwinds a run from inside, past every `except Exception` of the user's code; never leaves `run()`."""

from __future__ import annotations


class Signal(BaseException):
    """Unwinds a run from inside, past every `except Exception` of the user's code."""


class RunPaused(Signal):
    """A question or a wait is open and no body runs any more."""


class RunStopping(Signal):
    """An orderly stop was asked for, or the store failed: no further body starts."""


class LeaseLost(Signal):
    """A later holder has the run: nothing of this process counts any more."""

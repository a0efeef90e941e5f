"""Importing late what few runs need, where no signal is heard.

A handler that raises in the midst of an import leaves its lock taken for ever, and each other thread that wants the
module waits for it. Signals are heard in the main thread alone, so the import is done in another one. Called on the way
to a run's first step; what every run needs is imported with us.
"""

from __future__ import annotations

import importlib
import threading

_loaded: set[str] = set()


def load(*modules: str) -> None:
    """Import modules that are wanted next, wholly, also when this thread is interrupted as it waits for that."""
    if not _loaded.issuperset(modules):
        thread = threading.Thread(target=_import, args=(modules,), name="milepost-imports")
        thread.start()
        thread.join()


def _import(modules: tuple[str, ...]) -> None:
    for module in modules:
        importlib.import_module(module)
        _loaded.add(module)

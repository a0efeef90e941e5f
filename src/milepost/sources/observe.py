"""One look at any source, by its descriptor: the only door through which the rest of Milepost observes.

Foreign errors are translated here and in the observers: absent is an observation, cannot-tell is an exception.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from milepost.errors import SourceUnavailable
from milepost.regular import kind_at
from milepost.sources.call import observe_call
from milepost.sources.files import observe_file
from milepost.sources.folder import observe_folder
from milepost.sources.naming import cannot_tell, path_of
from milepost.sources.observation import Descriptor, Observation, absent
from milepost.sources.sql import observe_sql

LOOKS_MAX = 2  # at a folder out of which files vanish while it is read

Observer: TypeAlias = Callable[[Descriptor, bytes | None], Observation]


def observe(descriptor: Descriptor, *, seal_key: bytes | None) -> Observation:
    """Look at a source now. Content counts, never size and time; nothing there has the fingerprint None.

    A path is whatever stands there now: a folder that became a file is observed as a file, and thus differs.

    Raises:
        SourceUnavailable: it cannot be told: no permission, locked, no answer, changing too fast.
        BadOption: the source itself is declared wrongly, which only running it could show.
    """
    observer = _OBSERVERS.get(descriptor.get("kind", ""))
    if observer is None:
        kind = descriptor.get("kind")
        raise SourceUnavailable(source=f"a source of kind {kind!r}", reason="this version of Milepost does not know it")
    try:
        return observer(descriptor, seal_key)
    except (OSError, ValueError) as error:
        raise cannot_tell(descriptor, error) from error


def _observe_path(descriptor: Descriptor, seal_key: bytes | None) -> Observation:
    """Look at a file or folder. What vanishes between two system calls is looked for once more."""
    vanished: FileNotFoundError | NotADirectoryError | None = None
    for _ in range(LOOKS_MAX):
        kind = kind_at(path_of(descriptor))
        try:
            if kind is None:
                return absent(descriptor)
            return observe_folder(descriptor, seal_key) if kind == "folder" else observe_file(descriptor, seal_key)
        except (FileNotFoundError, NotADirectoryError) as error:
            vanished = error
    name = vanished.filename if vanished else path_of(descriptor)
    raise cannot_tell(descriptor, f"{name} vanished while it was being read, {LOOKS_MAX} times") from vanished


def _observe_http(descriptor: Descriptor, seal_key: bytes | None) -> Observation:
    # Imported here: most runs watch no URL, and every start of a command would pay for the HTTP client.
    from milepost.sources.http_answer import observe_http

    return observe_http(descriptor, seal_key)


_OBSERVERS: dict[str, Observer] = {
    "file": _observe_path,
    "folder": _observe_path,
    "sql": observe_sql,
    "http": _observe_http,
    "call": observe_call,
}

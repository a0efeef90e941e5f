"""How a path is taken apart: `outer/match[INV-7]#2` is `match[INV-7]#2` in the body `outer`. Pure.

Names of steps hold none of `/[]#`; a `key=` may hold all of them (a URL, a file), only not what would end it early.
Called by whoever asks in whose body a record stands.
"""

from __future__ import annotations

import re

ENDS_A_KEY = re.compile(r"\](?:#\d+)?/")
"""What no `key=` holds: behind it a path goes on."""
_PART = re.compile(r"[^/\[]*(?:\[.*?\](?:#\d+)?(?=/|$))?/?", re.DOTALL)


def body_of(path: str) -> str:
    """Return the path of the body a call stands in; '' is the task's own."""
    return path[: max(_last_at(path) - 1, 0)] if "[" in path else path.rpartition("/")[0]


def last_part(path: str) -> str:
    """Return what a call is called inside its body: `match[INV-7]#2`."""
    return path[_last_at(path) :] if "[" in path else path.rpartition("/")[2]


def _last_at(path: str) -> int:
    """Return where the last part of a path begins."""
    at = 0
    while (part := _PART.match(path, at)) is not None and part.end() < len(path):
        if part.end() == at:  # no path of ours: what is left is one part
            break
        at = part.end()
    return at


def parts_of(path: str) -> list[str]:
    """Return the parts of a path, the outermost body first."""
    found: list[str] = []
    while path:
        found.append(last_part(path))
        path = body_of(path)
    return found[::-1]

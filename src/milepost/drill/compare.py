"""Compares what stands after an interruption with what stands without one, and says what it found in few lines.

Outcomes, never wording: fields named in `ignore` and fields in which two undisturbed runs differ are left out. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from milepost.drill.order import Send
from milepost.drill.standing import Standing
from milepost.errors import MisuseError
from milepost.protocol.keys import name_in
from milepost.records.compare import Change, difference

SHOWN_MAX = 20
"""Differences of one trial that are kept."""


@dataclass(frozen=True, slots=True)
class Field:
    """A place in a section: `section` result, observe or a step's or effect's name; `path` as in `$.rows[*].note`."""

    section: str
    path: str

    def covers(self, section: str, path: str) -> bool:
        """Say whether a difference at this place is inside the field."""
        if not fnmatchcase(section, self.section.replace("[", "[[]")):
            return False
        parts = re.split(r"(\[\*\])", self.path)
        pattern = "".join(r"\[(\d+|\*)\]" if part == "[*]" else re.escape(part) for part in parts)
        return re.match(rf"{pattern}(?![\w])", path) is not None


def fields(given: Iterable[str]) -> list[Field]:
    """Read `--ignore`: `$.summary` is in the task's result, `extract$.note` in a step's output. Raises: MisuseError."""
    found = []
    for text in given:
        section, dollar, path = text.partition("$")
        if not dollar:
            raise MisuseError(reason=f"ignore {text!r}: expected [STEP]$.field, such as $.summary or extract$.note")
        found.append(Field(section or "result", f"${path}"))
    return found


def changes(expected: Standing, found: Standing, ignored: Sequence[Field]) -> list[str]:
    """Return the differences that count, one line each."""
    then, now = expected.sections(), found.sections()
    lines: list[str] = []
    for section in then:
        for change in difference(then[section], now[section], limit=500):
            if not any(field.covers(*_place(section, change)) for field in ignored):
                lines.append(_line(section, change))
    return lines[:SHOWN_MAX]


def unstable(one: Standing, other: Standing, ignored: Sequence[Field]) -> list[Field]:
    """Return the fields in which two undisturbed runs differ: a killed run cannot be blamed for those."""
    then, now = one.sections(), other.sections()
    found = [_place(s, change) for s in then for change in difference(then[s], now[s], limit=500)]
    places = {(section, _INDEX.sub("[*]", path)) for section, path in found}
    return [Field(*place) for place in sorted(places) if not any(field.covers(*place) for field in ignored)]


_INDEX = re.compile(r"\[\d+\]")
_KEY = re.compile(r"\$(?:\.([^\W\d]\w*)|\[\"((?:[^\"\\]|\\.)*)\"\])")


def _place(section: str, change: Change) -> tuple[str, str]:
    """Return a change's field: of a step or effect by its declared name, below its output or result."""
    if section not in ("steps", "effects"):
        return section, change.path
    match = _KEY.match(change.path)
    if match is None:
        return section, change.path
    rest = change.path[match.end() :]
    inner = rest.removeprefix(".output").removeprefix(".result")
    return name_in(match[1] or match[2] or ""), f"${inner}"


def _line(section: str, change: Change) -> str:
    return f"{section}{change.path.removeprefix('$')}: {str(change).partition(': ')[2]}"


# ── how often ───────────────────────────────────────────────────────────────────────────────────────


def skipped(expected: Standing, found: Standing) -> list[str]:
    """Return steps and effects that did not happen."""
    return [path for path in (*expected.steps, *expected.effects) if path not in {**found.steps, **found.effects}]


def repeated(expected: Standing, found: Standing, sends: Sequence[Send], usual: Mapping[str, int]) -> list[str]:
    """Return what happened more often than undisturbed: steps, sends that nothing absorbs, entries outside."""
    lines = [f"step {path} started again after it was verified" for path in found.repeated]
    for path, count in returned(sends).items():
        looked_up = any(send.looked_up for send in sends if send.path == path)
        if looked_up and count > usual.get(path, 1):
            lines.append(f"effect {path} was sent again: its lookup said not found, but the provider had accepted it")
    extra = _entries(found.world) - _entries(expected.world)
    if extra > len(lines):  # else they are what was told above
        lines.append(f"the outside has {extra} more than undisturbed")
    return lines


def returned(sends: Iterable[Send]) -> dict[str, int]:
    """Count per effect the sends that the provider answered."""
    found: dict[str, int] = {}
    for send in sends:
        if send.outcome == "returned":
            found[send.path] = found.get(send.path, 0) + 1
    return found


def _entries(value: Any) -> int:
    """Count the entries of what `observe` returned: of a list its items, of an object those of its values."""
    if isinstance(value, list):
        return len(value)
    if isinstance(value, dict):
        return sum(_entries(inner) if isinstance(inner, (list, dict)) else 1 for inner in value.values())
    return 0


# ── between two undisturbed runs ────────────────────────────────────────────────────────────────────


def unsteady_calls(one: Standing, other: Standing) -> list[str]:
    """Return calls whose inputs differ between two undisturbed runs although nothing recorded before them does.

    Whatever differs after a recorded output that differs may come from there, and a resume gets that output back.
    """
    lines = [
        f"{path} is called in one of two undisturbed runs only" for path in one.inputs.keys() ^ other.inputs.keys()
    ]
    recorded = {**one.steps, **one.effects}, {**other.steps, **other.effects}
    for path, given in one.inputs.items():
        if path in other.inputs and given != other.inputs[path]:
            first = difference(given, other.inputs[path], limit=1)
            lines.append(f"{path} gets other inputs each time: {first[0] if first else 'they differ'}")
        if recorded[0].get(path) != recorded[1].get(path):
            break
    return lines

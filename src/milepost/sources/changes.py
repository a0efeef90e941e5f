"""What is different between two looks at one source, in plain sentences for a question's evidence.

Knows labels and fingerprints only, never contents, and decides nothing: equal or not is the fingerprints' word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import islice

from milepost.sources.naming import inert
from milepost.sources.observation import Observation

CHANGES_MAX = 50  # sentences

_ITEM = {"file": "line", "folder": "file", "sql": "row"}
_UNIT = {"folder": "files", "sql": "rows"}


def changes(old: Observation, new: Observation, *, limit: int = CHANGES_MAX) -> list[str]:
    """Say what changed from `old` to `new`: at most `limit` sentences and one that counts the rest; [] when equal."""
    if old.fingerprint == new.fingerprint:
        return []
    if old.fingerprint is None:
        return [f"appeared ({_size(new)})"]
    if new.fingerprint is None:
        return ["is gone"]
    if _kind(old) != _kind(new):
        return [f"is a {_kind(new)} now ({_size(new)}), was a {_kind(old)} ({_size(old)})"]
    sentences = _parts(old, new) or iter([_whole(old, new)])
    return _limited(sentences, limit)


def _parts(old: Observation, new: Observation) -> Iterator[str] | None:
    """Compare part by part; None where one side's parts were too many to keep, or are all equal."""
    if not (_has_all_parts(old) and _has_all_parts(new)) or old.items == new.items:
        return None
    if _kind(new) == "file":
        return _lines(old.items, new.items)
    return _labelled(old, new)


def _has_all_parts(seen: Observation) -> bool:
    return bool(seen.items) or seen.size == 0


def _lines(old: tuple[tuple[str, str], ...], new: tuple[tuple[str, str], ...]) -> Iterator[str]:
    """Compare lines by where they stand; a changed or added line has its new number, a removed one its old."""
    before, after = [short for _, short in old], [short for _, short in new]
    for tag, start, end, new_start, new_end in SequenceMatcher(None, before, after).get_opcodes():
        if tag == "equal":
            continue
        paired = min(end - start, new_end - new_start)
        for at in range(new_start, new_start + paired):
            yield f"line {new[at][0]} changed"
        for at in range(new_start + paired, new_end):
            yield f"line {new[at][0]} was added"
        for at in range(start + paired, end):
            yield f"line {old[at][0]} was removed"


def _labelled(old: Observation, new: Observation) -> Iterator[str]:
    """Compare rows or files by their labels, in the new order and then what is gone."""
    item, before, after = _ITEM[_kind(new)], _by_label(old), _by_label(new)
    for label, short in after.items():
        if label not in before:
            yield f"{item} {label} was added"
        elif before[label] != short:
            yield f"{item} {label} changed"
    for label in before:
        if label not in after:
            yield f"{item} {label} was removed"
    if before == after:
        yield f"the order of the {_UNIT[_kind(new)]} changed"


def _by_label(seen: Observation) -> dict[str, str]:
    """Return the parts by label; a label seen before gets a number, `INV-7 (2)`."""
    counts: Counter[str] = Counter()
    found: dict[str, str] = {}
    for label, short in seen.items:
        counts[label] += 1
        shown = inert(label) or "(empty)"
        found[shown if counts[label] == 1 else f"{shown} ({counts[label]})"] = short
    return found


def _whole(old: Observation, new: Observation) -> str:
    if old.size == new.size:
        return f"content changed ({_size(new)} as before)" if new.size else "content changed"
    return f"content changed ({old.size:,} → {_size(new)})"


def _size(seen: Observation) -> str:
    return f"{seen.size:,} {_UNIT.get(_kind(seen), 'bytes')}"


def _kind(seen: Observation) -> str:
    return str(seen.descriptor["kind"])


def _limited(sentences: Iterator[str], limit: int) -> list[str]:
    shown = list(islice(sentences, limit))
    rest = sum(1 for _ in sentences)
    return [*shown, f"and {rest:,} more changes"] if rest else shown

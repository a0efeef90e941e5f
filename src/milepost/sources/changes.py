"""What is different between two looks at one source, in plain sentences for a question's evidence.

Says of lines and rows what they said where both looks kept it. Decides nothing: equal or not is the fingerprints'
word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import islice

from milepost.records.shown import inert
from milepost.sources.observation import Observation

CHANGES_MAX = 50  # sentences
SHOWN_MAX = 60  # characters of a line or row in a sentence
BEFORE_MAX = 20  # of them before the first difference

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
        return _lines(old, new)
    return _labelled(old, new)


def _has_all_parts(seen: Observation) -> bool:
    return bool(seen.items) or seen.size == 0


def _lines(old: Observation, new: Observation) -> Iterator[str]:
    """Compare lines by where they stand; a changed or added line has its new number, a removed one its old."""
    before, after = [short for _, short in old.items], [short for _, short in new.items]
    for tag, start, end, new_start, new_end in SequenceMatcher(None, before, after).get_opcodes():
        if tag == "equal":
            continue
        paired = min(end - start, new_end - new_start)
        for at in range(paired):
            said = _said(old, start + at), _said(new, new_start + at)
            yield f"line {new.items[new_start + at][0]}{_changed(*said)}"
        for at in range(new_start + paired, new_end):
            yield f"line {new.items[at][0]} was added{_told(_said(new, at))}"
        for at in range(start + paired, end):
            yield f"line {old.items[at][0]} was removed{_told(_said(old, at))}"


def _said(seen: Observation, at: int) -> str | None:
    return seen.texts[at] if seen.texts else None


def _changed(old: str | None, new: str | None) -> str:
    """Show both sides from shortly before where they part; what differs may lie in what is not kept."""
    if old is None or new is None or old == new:
        return " changed"
    pairs = zip(old, new, strict=False)
    alike = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(old), len(new)))
    start = alike - BEFORE_MAX if alike > BEFORE_MAX else 0
    return f": {_quoted(old, start)} → {_quoted(new, start)}"


def _told(text: str | None) -> str:
    return "" if text is None else f": {_quoted(text, 0)}"


def _quoted(text: str, start: int) -> str:
    end = start + SHOWN_MAX
    return f'"{"…" if start else ""}{inert(text[start:end])}{"…" if len(text) > end else ""}"'


def _labelled(old: Observation, new: Observation) -> Iterator[str]:
    """Compare rows or files by their labels, in the new order and then what is gone."""
    item, before, after = _ITEM[_kind(new)], _by_label(old), _by_label(new)
    for label, (short, said) in after.items():
        if label not in before:
            yield f"{item} {label} was added{_told(said)}"
        elif before[label][0] != short:
            yield f"{item} {label}{_changed(before[label][1], said)}"
    for label, (_, said) in before.items():
        if label not in after:
            yield f"{item} {label} was removed{_told(said)}"
    if {label: short for label, (short, _) in before.items()} == {label: short for label, (short, _) in after.items()}:
        yield f"the order of the {_UNIT[_kind(new)]} changed"


def _by_label(seen: Observation) -> dict[str, tuple[str, str | None]]:
    """Return fingerprint and text of the parts by label; a label seen before gets a number, `INV-7 (2)`."""
    counts: Counter[str] = Counter()
    found: dict[str, tuple[str, str | None]] = {}
    for at, (label, short) in enumerate(seen.items):
        counts[label] += 1
        shown = inert(label) or "(empty)"
        found[shown if counts[label] == 1 else f"{shown} ({counts[label]})"] = short, _said(seen, at)
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

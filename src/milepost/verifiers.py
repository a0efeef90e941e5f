"""Ready-made verifiers: row counts, uniqueness, totals, no empties, sizes.

`@step(verify=[row_count(at_least=1), unique("number"), total("amount", equals="control_total")])`. A verifier gets the
output and, by name, the inputs it declares; it returns None or one sentence that says which row and what was found.
Nothing here raises for bad data, asks the outside or changes what it is given. Called by the runtime.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation, Overflow
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

from milepost.errors import BadOption
from milepost.records.shown import cut

MESSAGE_MAX = 500  # characters of a sentence
VALUE_SHOWN_MAX = 60  # characters of a value in it
FINDINGS_SHOWN_MAX = 5  # rows named in it; the rest is counted
DIGITS_MAX = 400  # significant digits a total may need; more is refused rather than rounded

Inputs: TypeAlias = Mapping[str, Any]
Number: TypeAlias = int | float | Decimal

_EXACT = Context(prec=DIGITS_MAX, traps=[Inexact, InvalidOperation, Overflow])


@dataclass(frozen=True, slots=True)
class Verifier:
    """What every function here returns: a name for the checkpoint's `checks`, a judgement, the inputs it needs."""

    name: str
    judge: Callable[[Any, Inputs], str | None]
    inputs: tuple[str, ...] = ()

    def __call__(self, output: Any, **inputs: Any) -> str | None:
        """Judge one output: None when it passes, else one sentence of at most MESSAGE_MAX characters."""
        try:
            sentence = self.judge(output, inputs)
        except _Unfit as unfit:
            sentence = str(unfit)
        return None if sentence is None else cut(sentence, MESSAGE_MAX)


class _Unfit(Exception):
    """The output has not the shape the question is about; a failed check, told at its door."""


# ── the verifiers ───────────────────────────────────────────────────────────────────────────────────


def row_count(
    *, at_least: int | None = None, at_most: int | None = None, equals: int | str | None = None, rows: str = ""
) -> Verifier:
    """Require a number of rows; `equals` is a number, or names an input that is one.

    `rows`, here and below, is the dotted path to the rows where the output is not the rows itself. The rows of a
    mapping are its values.
    """
    bounds = {"at_least": at_least, "at_most": at_most, "equals": equals}
    given = [f"{word}={value}" for word, value in bounds.items() if value is not None]
    if not given:
        raise BadOption(where="row_count()", reason="expected at_least=, at_most= or equals=")

    def judge(output: Any, inputs: Inputs) -> str | None:
        count = len(_rows(output, rows))
        exactly = _wanted(equals, inputs) if equals is not None else None
        if exactly is not None and count != exactly:
            return f"expected {exactly} rows, found {count}"
        if at_least is not None and count < at_least:
            return f"expected at least {at_least} rows, found {count}"
        if at_most is not None and count > at_most:
            return f"expected at most {at_most} rows, found {count}"
        return None

    return Verifier(_named("row_count", *given, rows=rows), judge, _input_of(equals))


def matches_count_of(input_name: str, *, rows: str = "") -> Verifier:
    """Require as many rows as an input of the step has items; `input_name` may be a dotted path into it."""

    def judge(output: Any, inputs: Inputs) -> str | None:
        expected, found = len(_rows(_input(input_name, inputs), "")), len(_rows(output, rows))
        return None if found == expected else f"{input_name} has {expected} items, the output has {found} rows"

    return Verifier(_named("matches_count_of", input_name, rows=rows), judge, _input_of(input_name))


def unique(*field_paths: str, rows: str = "") -> Verifier:
    """Require that no two rows are equal in these fields; without fields, that no two rows are equal."""

    def judge(output: Any, _inputs: Inputs) -> str | None:
        first_seen: dict[Any, str] = {}
        findings = []
        for label, row in _labelled(_rows(output, rows)):
            found = [_field(row, path, label) for path in field_paths] or [row]
            earlier = first_seen.setdefault(tuple(map(_hashable, found)), label)
            if earlier != label:
                findings.append(f"{earlier} and {label} both have {', '.join(map(_shown, found))}")
        return _told(findings)

    return Verifier(_named("unique", *field_paths, rows=rows), judge)


def no_empties(*field_paths: str, rows: str = "") -> Verifier:
    """Require these fields of every row to hold something; without fields, all fields of every row.

    Empty are None, text of nothing but white space, and collections without items; 0 and False are not.
    """

    def judge(output: Any, _inputs: Inputs) -> str | None:
        findings = []
        for label, row in _labelled(_rows(output, rows)):
            for path in field_paths or _field_names(row) or ("",):
                value = _field(row, path, label)
                if _is_empty(value):
                    findings.append(f"{label}: {path or 'it'} is {_shown(value)}")
        return _told(findings)

    return Verifier(_named("no_empties", *field_paths, rows=rows), judge)


def total(field_path: str, *, equals: Number | str, tolerance: Number = 0, rows: str = "") -> Verifier:
    """Require that a field adds up, to a number or to an input by name (or by dotted path into it).

    Decimals and ints are added exactly. As soon as one float is among them all are added as floats (correctly
    rounded, `math.fsum`), and a `tolerance` is needed for what binary fractions cannot hold.
    """
    if not _is_finite(tolerance) or tolerance < 0:
        raise BadOption(where=f"total({field_path!r})", reason=f"tolerance: expected 0 or more, found {tolerance!r}")

    def judge(output: Any, inputs: Inputs) -> str | None:
        numbers = [_number(row, field_path, label) for label, row in _labelled(_rows(output, rows))]
        expected = _wanted(equals, inputs)
        found, apart = _sum_and_distance(numbers, expected)
        if apart <= Decimal(tolerance):
            return None
        advice = "" if isinstance(found, Decimal) or tolerance else "; floats need a tolerance="
        return f"{field_path} adds up to {found}, expected {expected} ({apart.normalize():f} apart){advice}"

    within = (f"±{tolerance}",) if tolerance else ()
    return Verifier(_named("total", f"{field_path}={equals}", *within, rows=rows), judge, _input_of(equals))


def each(judge_row: Callable[[Any], bool | str | None], *, rows: str = "") -> Verifier:
    """Require every row to pass a function: False, a sentence or an exception fails the row; True or None passes."""
    name = getattr(judge_row, "__name__", type(judge_row).__name__)
    if inspect.iscoroutinefunction(judge_row):
        raise BadOption(where=f"each({name})", reason="expected a plain function, found a coroutine function")

    def judge(output: Any, _inputs: Inputs) -> str | None:
        labelled = _labelled(_rows(output, rows))
        reasons = ((label, _verdict(judge_row, row)) for label, row in labelled)
        return _told([f"{label}: {reason}" for label, reason in reasons if reason is not None])

    return Verifier(_named("each", name, rows=rows), judge)


def max_size(size_max: int) -> Verifier:
    """Require at most `size_max` bytes: of bytes themselves, of the file behind a path, else of the value as JSON."""

    def judge(output: Any, _inputs: Inputs) -> str | None:
        size = _size(output)
        return None if size <= size_max else f"expected at most {size_max:,} bytes, found {size:,}"

    return Verifier(_named("max_size", str(size_max)), judge)


# ── rows and fields ─────────────────────────────────────────────────────────────────────────────────


def _rows(output: Any, path: str) -> Sequence[tuple[str, Any]] | Sequence[Any] | Mapping[Any, Any] | Set[Any]:
    found = _field(output, path, "the output")
    if isinstance(found, (Sequence, Set, Mapping)) and not isinstance(found, (str, bytes, bytearray)):
        return found
    raise _Unfit(f"expected rows (a list, tuple, set or mapping){' at ' + path if path else ''}, found {_kind(found)}")


def _labelled(rows: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(rows, Mapping):
        return ((f"row {_shown(key)}", row) for key, row in rows.items())
    return ((f"row {number}", row) for number, row in enumerate(rows, start=1))


def _field(row: Any, path: str, label: str) -> Any:
    """Follow a dotted path from a row; '' is the row itself."""
    value = row
    for name in path.split(".") if path else ():
        value = _step_into(value, name, label)
    return value


def _step_into(value: Any, name: str, label: str) -> Any:
    if isinstance(value, Mapping):
        if name in value:
            return value[name]
    elif name in _field_names(value) or _is_property(value, name):
        return getattr(value, name)
    elif name.isdecimal() and isinstance(value, (list, tuple)) and int(name) < len(value):
        return value[int(name)]
    known = ", ".join(map(str, _field_names(value)))
    raise _Unfit(f"{label} ({_kind(value)}) has no field {name!r}{'; it has ' + known if known else ''}")


def _field_names(value: Any) -> tuple[str, ...]:
    if isinstance(value, Mapping):
        return tuple(key for key in value if isinstance(key, str))
    if is_dataclass(value):
        return tuple(field.name for field in fields(value))
    if isinstance(value, BaseModel):
        return tuple(type(value).model_fields)
    return tuple(getattr(value, "_fields", ()))


def _is_property(value: Any, name: str) -> bool:
    return isinstance(inspect.getattr_static(type(value), name, None), property)


def _input(path: str, inputs: Inputs) -> Any:
    name, _, rest = path.partition(".")
    if name not in inputs:
        raise _Unfit(f"the step has no input {name!r}")
    return _field(inputs[name], rest, f"input {name}")


def _input_of(wanted: Any) -> tuple[str, ...]:
    return (wanted.partition(".")[0],) if isinstance(wanted, str) else ()


# ── values ──────────────────────────────────────────────────────────────────────────────────────────


def _wanted(wanted: Any, inputs: Inputs) -> Number:
    value = _input(wanted, inputs) if isinstance(wanted, str) else wanted
    if _is_finite(value):
        return value
    raise _Unfit(f"{wanted} is {_shown(value)}, expected a finite number")


def _number(row: Any, path: str, label: str) -> Number:
    value = _field(row, path, label)
    if _is_finite(value):
        return value
    raise _Unfit(f"{label}: {path or 'it'} is {_shown(value)} ({_kind(value)}), expected a finite number")


def _is_finite(value: Any) -> TypeGuard[Number]:
    if isinstance(value, Decimal):
        return value.is_finite()
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _sum_and_distance(numbers: list[Number], expected: Number) -> tuple[Number, Decimal]:
    """Return the sum, and how far it is from what was expected, neither of them rounded but for floats' own sum."""
    try:
        found: Number
        if any(isinstance(number, float) for number in numbers):
            found = math.fsum(numbers)
        else:
            found = Decimal(0)
            for number in numbers:
                found = _EXACT.add(found, Decimal(number))
        return found, _EXACT.subtract(Decimal(found), Decimal(expected)).copy_abs()
    except (DecimalException, OverflowError, ValueError):
        raise _Unfit(f"the total cannot be computed exactly within {DIGITS_MAX} digits") from None


def _is_empty(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, (Sequence, Set, Mapping)) and not value)


def _hashable(value: Any) -> Any:
    """Return something two equal values share: the value itself, or its text where it has no hash."""
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


def _size(output: Any) -> int:
    if isinstance(output, (bytes, bytearray)):
        return len(output)
    try:
        return output.stat().st_size if isinstance(output, Path) else len(to_json(output))
    except (OSError, PydanticSerializationError, ValueError) as error:
        raise _Unfit(f"its size cannot be told: {error}") from error


def _verdict(judge_row: Callable[[Any], bool | str | None], row: Any) -> str | None:
    """Return why a row fails, None when it passes."""
    try:
        verdict = judge_row(row)
    except Exception as error:  # noqa: BLE001 - a user's function; its exception is a failed row by contract
        return f"{type(error).__name__}: {_shown(error, str)}"
    if verdict is None or verdict is True:
        return None
    return _shown(row) if verdict is False else str(verdict)


# ── words ───────────────────────────────────────────────────────────────────────────────────────────


def _told(findings: list[str]) -> str | None:
    """Say the first findings and count the rest; None when there are none."""
    rest = len(findings) - FINDINGS_SHOWN_MAX
    shown = "; ".join(cut(finding, MESSAGE_MAX // FINDINGS_SHOWN_MAX - 8) for finding in findings[:FINDINGS_SHOWN_MAX])
    return (f"{shown}; and {rest} more" if rest > 0 else shown) or None


def _named(verifier: str, *arguments: str, rows: str = "") -> str:
    return f"{verifier}({', '.join([*arguments, *([f'rows={rows}'] if rows else [])])})"


def _shown(value: Any, spell: Callable[[Any], str] = repr) -> str:
    try:
        return cut(spell(value), VALUE_SHOWN_MAX)
    except Exception:  # noqa: BLE001 - a user's `__repr__`; the finding matters more than its wording
        return f"<{_kind(value)} that cannot be shown>"


def _kind(value: Any) -> str:
    return type(value).__name__

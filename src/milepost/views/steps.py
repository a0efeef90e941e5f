"""The steps and effects of a run as rows: in order, nested ones indented, many equal items counted. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby
from typing import Any

from milepost.protocol.keys import name_in, names_in
from milepost.protocol.snapshot import Snapshot
from milepost.protocol.state import EffectState, StepState
from milepost.records.model import EffectShadowed, Outcome
from milepost.records.naming import body_of, last_part, parts_of
from milepost.records.shown import cut
from milepost.runtime.opening import Opened
from milepost.views.approvals import said_of, waiting_calls
from milepost.views.summaries import how_far, outcome_marks
from milepost.views.words import amount, clock_time, cost, lasting

HEADERS = ("step", "stands", "try", "took", "checks / key", "model", "output", "about")
ITEMS_MAX = 6
"""So many equal siblings in a row are shown one by one; more are counted."""
ABOUT_LENGTH_MAX = 120
"""Characters of what is said about a call in its line."""


@dataclass(frozen=True, slots=True)
class Row:
    """One step or effect as `show` tells it."""

    path: str
    kind: str  # step, effect
    stands: str
    attempt: int
    duration_s: float
    checks: Sequence[str] = ()
    key: str = ""
    ref: str | None = None
    marks: Sequence[str] = ()
    spent: dict[str, Any] | None = None
    output_size: int | None = None
    next_action: str = ""
    about: str = ""

    @property
    def depth(self) -> int:
        return len(parts_of(self.path)) - 1


def steps(opened: Opened) -> list[Row]:
    """Return the steps and effects of a run, each followed by what is inside it."""
    s = opened.snapshot
    return [_decided(s, row) for row in _below(s, "")]


def _decided(s: Snapshot, row: Row) -> Row:
    """Add who approved a call, or the output of one, to what is said about it."""
    decided = [state for state in (s.approvals.get(row.path), s.reviews.get(row.path)) if state is not None]
    if not decided or row.kind == "call":
        return row
    return replace(row, about=_joined(row.about, *map(said_of, decided)))


def _below(s: Snapshot, body: str) -> Iterator[Row]:
    for path in _in_order(s, s.children.get(body, ())):
        step, effect = s.steps.get(path), s.effects.get(path)
        if effect is not None:
            yield _effect_row(effect)
        elif step is not None and (step.attempt or step.verified or step.until):
            yield _step_row(step)
        yield from _below(s, path)
    for path, stands, about in waiting_calls(s, body):
        yield Row(path, "call", stands, 0, 0.0, about=about)


def _in_order(s: Snapshot, paths: Sequence[str]) -> Sequence[str]:
    """Return paths in the order of their first records; of a fork, which copied its effects first, as they ended."""
    if s.started is None or not s.started.forked_from:
        return paths
    return sorted(paths, key=lambda path: _ended_at(s, path))


def _ended_at(s: Snapshot, path: str) -> str:
    step, effect = s.steps.get(path), s.effects.get(path)
    done = (effect.applied or effect.shadowed) if effect is not None else None
    ended = done or (step.verified if step is not None else None)
    return ended.at if ended is not None else "~"  # after every time


def _step_row(step: StepState) -> Row:
    done = step.verified
    return Row(
        path=step.path,
        kind="step",
        stands=step.status.value,
        attempt=step.attempt,
        duration_s=done.duration_s if done else step.failure.duration_s if step.failure else 0.0,
        checks=done.checks if done else (),
        spent=dict(done.spent) if done and done.spent else None,
        output_size=done.output.size if done else None,
        next_action=done.next_action if done else "",
        about=_step_about(step),
    )


def _step_about(step: StepState) -> str:
    waits = f"waits until {clock_time(step.until)}" if step.until is not None and not step.finished else ""
    if step.failure is not None:
        return _joined(waits, str(step.failure.error))
    said = step.heartbeat
    if waits or said is None or step.finished:
        return waits
    return f"{how_far(said)} {said.note}".rstrip()


def _effect_row(effect: EffectState) -> Row:
    if effect.shadowed is not None:
        return _shadowed_row(effect.shadowed)
    last, outcome = effect.last, effect.applied or effect.failure or (effect.last.outcome if effect.last else None)
    return Row(
        path=effect.path,
        kind="effect",
        stands=effect_stands(effect),
        attempt=last.intent.attempt if last else 0,
        duration_s=outcome.duration_s if outcome else 0.0,
        key=(last.intent.key if last else "") or (outcome.key if outcome else ""),
        ref=outcome.ref if outcome else None,
        marks=outcome_marks(outcome) if outcome and outcome.outcome == Outcome.APPLIED else (),
        spent=dict(outcome.spent) if outcome and outcome.spent else None,
        output_size=outcome.result.size if outcome and outcome.result else None,
        next_action=outcome.next_action if outcome else "",
        about=_effect_about(effect),
    )


def _shadowed_row(noted: EffectShadowed) -> Row:
    return Row(
        path=noted.path,
        kind="effect",
        stands="shadowed",
        attempt=0,
        duration_s=0.0,
        key=noted.key,
        output_size=noted.result.size if noted.result else None,
        next_action=noted.next_action,
        about=f"would have been sent to {noted.provider}"
        + (f" once {noted.would_ask} approved" if noted.would_ask else ""),
    )


def effect_stands(effect: EffectState) -> str:
    """Say in a word where an effect stands."""
    if effect.applied is not None:
        return "applied"
    if effect.shadowed is not None:
        return "shadowed"
    if effect.open_sends:
        return "open"
    return "rejected" if effect.sends else "waiting"


def _effect_about(effect: EffectState) -> str:
    outcome = effect.last.outcome if effect.last else None
    if effect.applied is None and outcome is not None and outcome.error is not None:
        return str(outcome.error)
    if effect.until is not None and not effect.finished:
        return f"waits until {clock_time(effect.until)}"
    return ""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: its cells by HEADERS; `path` is None for a line that stands for several.

    `names` is the path without what tells items apart: what `opened` names to see them one by one.
    """

    path: str | None
    depth: int
    cells: tuple[object, ...]
    kind: str  # step, effect, call
    names: str


def shown_rows(rows: Sequence[Row], *, every: bool) -> list[tuple[object, ...]]:
    """Return table rows with indented names, as `shown_lines` cuts them."""
    return [("  " * line.depth + str(line.cells[0]), *line.cells[1:]) for line in shown_lines(rows, every=every)]


def shown_lines(rows: Sequence[Row], *, every: bool, opened: Container[str] = ()) -> list[Line]:
    """Return lines, inner ones below their step; more than ITEMS_MAX equal siblings are counted in one.

    Those whose names are in `opened` are shown one by one all the same.
    """
    inside: dict[str, list[Row]] = {}
    for row in rows:
        inside.setdefault(body_of(row.path), []).append(row)
    return list(_shown(inside, [""], lambda name: every or name in opened))


def _shown(inside: dict[str, list[Row]], bodies: Sequence[str], is_open: Callable[[str], bool]) -> Iterator[Line]:
    """Show what is inside these bodies; of several, which one line stands for, everything equal is counted together."""
    rows = [row for body in bodies for row in inside.get(body, ())]
    for group in _groups(rows, across=len(bodies) > 1):
        if len(group) <= ITEMS_MAX or is_open(_names(group[0].path)):
            for row in group:
                yield _line(row, row.path if len(bodies) > 1 else last_part(row.path))
                yield from _shown(inside, [row.path], is_open)
        else:
            yield _counted(group)
            yield from _shown(inside, [row.path for row in group], is_open)


def _names(path: str) -> str:
    return "/".join(names_in(path))


def _groups(rows: Sequence[Row], *, across: bool) -> Iterable[list[Row]]:
    """Put equal rows together: neighbours only, or all of them."""
    ordered = sorted(rows, key=_likeness) if across else rows
    return (list(group) for _, group in groupby(ordered, key=_likeness))


def _likeness(row: Row) -> tuple[str, str]:
    return name_in(row.path), row.stands


def _line(row: Row, shown_as: str) -> Line:
    took = lasting(row.duration_s) if row.duration_s else ""
    size = amount(row.output_size) if row.output_size is not None else ""
    about = cut(_joined(*row.marks, f"ref {row.ref}" if row.ref else "", row.about), ABOUT_LENGTH_MAX)
    checks = row.key or ", ".join(row.checks)
    cells = (shown_as, row.stands, row.attempt or "", took, checks, cost(row.spent), size, about)
    return Line(row.path, row.depth, cells, row.kind, _names(row.path))


def _joined(*said: str) -> str:
    return "; ".join(filter(None, said))


def _counted(group: Sequence[Row]) -> Line:
    first = group[0]
    name = f"{name_in(first.path)} × {len(group)}"
    tries = max(row.attempt for row in group)
    took = lasting(sum(row.duration_s for row in group))
    size = amount(sum(row.output_size or 0 for row in group))
    marks = sorted({mark for row in group for mark in row.marks})
    marked = sum(bool(row.marks) for row in group)
    about = f"{marked} {' or '.join(marks)}" if marked else ""
    cells = (name, first.stands, tries, took, ", ".join(first.checks), cost(_sum(group)), size, about)
    return Line(None, first.depth, cells, first.kind, _names(first.path))


def spent_in_all(s: Snapshot) -> dict[str, Any] | None:
    """Return what models took in a whole run, inside its steps, too: what its row and its limits count.

    Needs every chain. None when nothing was spent.
    """
    used = s.used
    if not (used.cost or used.tokens):
        return None
    return {
        "input_tokens": used.input_tokens,
        "output_tokens": used.tokens - used.input_tokens,
        "cost": str(used.cost),
        "currency": "/".join(sorted(used.currencies)),
    }


def _sum(group: Sequence[Row]) -> dict[str, Any] | None:
    """Add up what models took in these rows; several currencies are all named."""
    given = [row.spent for row in group if row.spent]
    if not given:
        return None
    currencies = sorted({str(spent.get("currency", "")) for spent in given})
    return {
        "input_tokens": sum(spent.get("input_tokens", 0) for spent in given),
        "output_tokens": sum(spent.get("output_tokens", 0) for spent in given),
        "cost": str(sum((Decimal(str(spent.get("cost", "0"))) for spent in given), Decimal(0))),
        "currency": "/".join(currencies),
    }

"""Pictures, drawn on the server as SVG: a run's timeline, a task's role, days of health. Every text is inert, escaped.

Colours are classes of the style sheet, so that light, dark and print agree. Called by the templates. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from milepost.console.scale import Scale, scale_of
from milepost.views.inert import inert
from milepost.views.words import lasting

WIDTH = 1000
LABELS = 190
"""Width of the names on the left, in units of the picture."""
LANE = 12
ROW_GAP = 8
BAR = 10
TOP = 34
NAME_LENGTH_MAX = 26
ABOUT_LENGTH_MAX = 200
MARKS = {
    "died": ("✕", "mark-died"),
    "resumed": ("▶", "mark-resumed"),
    "started": ("●", "mark-started"),
    "answered": ("✓", "mark-answered"),
    "cancelled": ("■", "mark-died"),
    "done": ("◆", "mark-done"),
    "failed": ("▲", "mark-died"),
    "stopped": ("■", "mark-died"),
    "asking": ("?", "mark-asking"),
    "waiting": ("⏸", "mark-waiting"),
    "interrupted": ("⏏", "mark-waiting"),
}
"""How moments of a run are shown: a sign, for those who do not see colours, and a class."""


def _tag(name: str, inside: str = "", /, **attributes: object) -> str:
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{_safe(value)}"' for key, value in attributes.items())
    return f"<{name}{given}>{inside}</{name}>"


def _safe(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(escape(inert(value)))


def _cut(text: object, length_max: int) -> str:
    shown = inert(text)
    return shown if len(shown) <= length_max else shown[: length_max - 1] + "…"


def _svg(height: float, label: str, parts: Iterable[str], *, width: float = WIDTH) -> Markup:
    title = _tag("title", _safe(label))
    return Markup(
        _tag("svg", title + "".join(parts), viewBox=f"0 0 {width:.0f} {height:.0f}", role="img", class_="picture")
    )


# ── a run's timeline ────────────────────────────────────────────────────────────────────────────────


def timeline_svg(told: Mapping[str, Any]) -> Markup:
    """Draw a timeline: rows from above, time from the left; long stretches where nothing ran are folded."""
    rows = told["rows"]
    if not rows:
        return Markup("")
    scale = scale_of(_busy(rows), told["now"], left=LABELS, right=WIDTH - 16)
    height = TOP + sum(_height(row) for row in rows) + 8
    parts = [*_folds(scale, height), *_ticks(scale, height), *_marks(told["marks"], scale, height)]
    y = float(TOP)
    for row in rows:
        parts += _row(row, scale, y)
        y += _height(row)
    label = (
        f"Timeline of the run: {len(rows)} rows over {lasting(told['now'])}. The table below says the same in words."
    )
    return _svg(height, label, parts)


def _busy(rows: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    idle = ("wait", "asking", "doubt")
    return [(bar["start"], bar["end"]) for row in rows for bar in row["bars"] if bar["state"] not in idle]


def _height(row: Mapping[str, Any]) -> int:
    return int(row["lanes"]) * LANE + ROW_GAP


def _row(row: Mapping[str, Any], scale: Scale, y: float) -> Iterator[str]:
    count = f" ×{row['count']}" if row["count"] > 1 else ""
    name = _cut("  " * row["depth"] + row["name"], NAME_LENGTH_MAX - len(count)) + count
    yield _tag("text", _safe(name), x=8 + 10 * row["depth"], y=y + BAR - 1, class_=f"name name-{row['kind']}")
    for bar in _merged(row["bars"], scale):
        about = _tag("title", _safe(f"{bar.path or row['name']}: {bar.state}. {_cut(bar.about, ABOUT_LENGTH_MAX)}"))
        yield _tag(
            "rect",
            about,
            x=bar.x,
            y=y + bar.lane * LANE,
            width=max(bar.width, 1.5),
            height=BAR,
            rx=2,
            class_=f"bar bar-{bar.state}",
        )
    if row["beyond"]:
        yield _tag("text", _safe(f"+{row['beyond']} more at once"), x=WIDTH - 130, y=y + BAR - 1, class_="note")


@dataclass(slots=True)
class _Drawn:
    path: str
    about: str
    state: str
    lane: int
    x: float
    width: float


def _merged(bars: Sequence[Mapping[str, Any]], scale: Scale) -> list[_Drawn]:
    """Put bars of one state together that nobody could tell apart: ten thousand steps are not so many rectangles."""
    found: list[_Drawn] = []
    last: dict[int, _Drawn] = {}
    for bar in sorted(bars, key=lambda bar: bar["start"]):
        x = scale.x(bar["start"])
        end = max(scale.x(bar["end"]), x)
        before = last.get(bar["lane"])
        if before is not None and before.state == bar["state"] and x < before.x + before.width + 0.5 and end - x < 1.0:
            before.width = max(end - before.x, before.width)
            before.path, before.about = "several", "too short to be told apart here"
            continue
        last[bar["lane"]] = _Drawn(bar["path"], bar["about"], bar["state"], bar["lane"], x, end - x)
        found.append(last[bar["lane"]])
    return found


def _folds(scale: Scale, height: float) -> Iterator[str]:
    for fold in scale.folds:
        middle = (fold.left + fold.right) / 2
        yield _tag("rect", x=fold.left, y=TOP - 6, width=fold.right - fold.left, height=height - TOP, class_="fold")
        yield _tag("text", _safe(lasting(fold.seconds)), x=middle, y=TOP - 10, text_anchor="middle", class_="note")


def _ticks(scale: Scale, height: float) -> Iterator[str]:
    for seconds in scale.ticks():
        x = scale.x(seconds)
        yield _tag("line", x1=x, x2=x, y1=TOP - 6, y2=height - 4, class_="tick")
        yield _tag("text", _safe(lasting(seconds)), x=x + 3, y=10, class_="note")


def _marks(marks: Sequence[Mapping[str, Any]], scale: Scale, height: float) -> Iterator[str]:
    for mark in marks:
        sign, name = MARKS.get(mark["what"], ("·", "mark-started"))
        x = scale.x(mark["at"])
        about = _tag("title", _safe(f"{mark['what']}: {_cut(mark['about'], ABOUT_LENGTH_MAX)}"))
        line = _tag("line", x1=x, x2=x, y1=TOP - 4, y2=height - 4)
        yield _tag("g", about + line + _tag("text", sign, x=x, y=TOP - 8, text_anchor="middle"), class_=f"mark {name}")


# ── a task's role ───────────────────────────────────────────────────────────────────────────────────


def role_svg(role: Mapping[str, Any]) -> Markup:
    """Draw a role definition: the task, then each step and effect in the order they are declared."""
    calls = role["calls"]
    parts = [_card(0, "task", role["task"], f"→ {role['output']}", [])]
    for number, call in enumerate(calls, 1):
        parts.append(_card(number, call["kind"], call["name"], f"→ {call['output']}", _signs(call["facts"])))
        parts.append(_tag("line", x1=40.0, x2=40.0, y1=number * 64.0 - 8, y2=number * 64.0 + 8, class_="arrow"))
    return _svg((len(calls) + 1) * 64 + 8, f"Role definition of {role['task']}", parts, width=640)


def _card(number: int, kind: str, name: str, output: str, signs: Sequence[str]) -> str:
    y = number * 64 + 8
    inside = _tag("rect", x=16, y=y, width=608, height=48, rx=8, class_=f"card card-{kind}")
    inside += _tag("text", _safe(f"{kind} {_cut(name, 40)}"), x=32, y=y + 20, class_="card-name")
    inside += _tag("text", _safe(_cut(output, 44)), x=32, y=y + 38, class_="note")
    inside += _tag("text", _safe(_cut(" · ".join(signs), 60)), x=608, y=y + 20, text_anchor="end", class_="note")
    return inside


def _signs(facts: Mapping[str, str]) -> list[str]:
    names = ("approval", "review", "needs permission", "provider", "verified by")
    return [f"{name}: {_cut(facts[name], 28)}" for name in names if name in facts][:2]


# ── days ────────────────────────────────────────────────────────────────────────────────────────────


def days_svg(days: Sequence[Mapping[str, Any]], what: str) -> Markup:
    """Draw one number by day as columns."""
    shown = list(days)[-40:]
    most = max((float(day[what]) for day in shown), default=0.0)
    if not most:
        return Markup("")
    step = (WIDTH - 40) / len(shown)
    parts = []
    for number, day in enumerate(shown):
        height = 90 * float(day[what]) / most
        said = f"{day['day']}: {lasting(day[what]) if what.endswith('_s') else day[what]}"
        x, width = 20 + number * step, min(step * 0.8, 60)
        parts.append(
            _tag(
                "rect",
                _tag("title", _safe(said)),
                x=x,
                y=100 - height,
                width=width,
                height=max(height, 1.0),
                rx=2,
                class_="day",
            )
        )
        if number % max(len(shown) // 8, 1) == 0:
            parts.append(_tag("text", _safe(day["day"][5:]), x=x, y=116, class_="note"))
    return _svg(124, f"{what.removesuffix('_s').replace('_', ' ')} by day", parts)

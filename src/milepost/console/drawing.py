"""Pictures of a run, drawn on the server as SVG: its timeline and the legend of it. Every text is inert and escaped.

Colours are classes of the style sheet, so that light, dark and print agree; each state has a shape of its own as well.
The pictures of a task and of days are in `charts`. Called by the templates. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from milepost.console.scale import Scale, scale_of
from milepost.records.shown import cut, inert
from milepost.views.words import lasting

WIDTH = 1000
LABELS = 180
"""Width of the names on the left, in units of the picture."""
LANE = 13
ROW_GAP = 9
BAR = 10
THIN = 4
TOP = 44
MARK_ROOM = 13.0
"""Units between the signs of two marks, which may be of the same moment."""
NAME_LENGTH_MAX = 25
ABOUT_LENGTH_MAX = 200
MARKS = {
    "started": ("●", "mark-started"),
    "resumed": ("▶", "mark-resumed"),
    "died": ("✕", "mark-died"),
    "asking": ("?", "mark-asking"),
    "answered": ("✓", "mark-answered"),
    "waiting": ("◔", "mark-waiting"),
    "interrupted": ("‖", "mark-waiting"),
    "cancelled": ("■", "mark-died"),
    "stopped": ("■", "mark-died"),
    "failed": ("▲", "mark-died"),
    "done": ("◆", "mark-done"),
}
"""How moments of a run are shown: a sign, for those who do not see colours, and a class."""
BARS = {
    "work": "a process works on the run",
    "verified": "verified",
    "applied": "applied",
    "running": "running",
    "shadowed": "shadowed, not sent",
    "doubt": "sent, outcome not known",
    "asking": "waits for a person",
    "wait": "waits for a time",
    "failed": "failed",
    "rejected": "rejected, nothing happened",
    "lost": "lost when the process died",
    "returned": "stopped in order",
}
"""What each kind of bar means."""


def tag(name: str, inside: str = "", /, **attributes: object) -> str:
    """Return an element; `inside` is markup already, attributes are made inert and escaped."""
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{safe(value)}"' for key, value in attributes.items())
    return f"<{name}{given}>{inside}</{name}>"


def safe(value: object) -> str:
    """Return a value as text of a picture."""
    return f"{value:.1f}" if isinstance(value, float) else str(escape(inert(value)))


def roughly(seconds: float) -> str:
    """Say a length in little room: its largest unit only."""
    return " ".join(lasting(seconds).split(" ")[:2])


def svg(height: float, label: str, parts: Iterable[str], *, width: float = WIDTH, kind: str = "picture") -> Markup:
    """Put parts into a picture that says in words what it shows."""
    title = tag("title", safe(label))
    return Markup(tag("svg", title + "".join(parts), viewBox=f"0 0 {width:.0f} {height:.0f}", role="img", class_=kind))


# ── a run's timeline ────────────────────────────────────────────────────────────────────────────────


def timeline_svg(told: Mapping[str, Any]) -> Markup:
    """Draw a timeline: rows from above, time from the left; long stretches where nothing ran are folded."""
    rows = told["rows"]
    if not rows:
        return Markup("")
    scale = scale_of(_busy(rows), told["now"], left=LABELS, right=WIDTH - 16)
    height = TOP + sum(_height(row) for row in rows) + 8
    parts = [*_lines(rows), *_folds(scale, height), *_ticks(scale, height), *_marks(told["marks"], scale, height)]
    y = float(TOP)
    for row in rows:
        parts += _row(row, scale, y)
        y += _height(row)
    label = (
        f"Timeline of the run: {len(rows)} rows over {lasting(told['now'])}. The table below says the same in words."
    )
    return svg(height, label, parts)


def legend_svg(told: Mapping[str, Any]) -> Markup:
    """Say what each bar and sign of a timeline means: only those that are in it."""
    states = {bar["state"] for row in told["rows"] for bar in row["bars"]}
    marks = {mark["what"] for mark in told["marks"]}
    bars = [(_swatch(state), said) for state, said in BARS.items() if state in states]
    signs = [(_sign(what), what) for what in MARKS if what in marks]
    items = "".join(tag("li", picture + safe(said)) for picture, said in (*bars, *signs))
    return Markup(tag("ul", items, class_="legend", aria_label="What bars and signs mean"))


def _swatch(state: str) -> str:
    bar = tag("rect", x=1, y=1 + _inset(state), width=18, height=_thickness(state), rx=2, class_=f"bar bar-{state}")
    return tag("svg", bar, viewBox="0 0 20 12", width=20, height=12, class_="picture swatch", aria_hidden="true")


def _sign(what: str) -> str:
    sign, name = MARKS[what]
    return tag("span", sign, class_=f"sign {name}", aria_hidden="true")


def _busy(rows: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    idle = ("wait", "asking", "doubt")
    return [(bar["start"], bar["end"]) for row in rows for bar in row["bars"] if bar["state"] not in idle]


def _height(row: Mapping[str, Any]) -> int:
    return int(row["lanes"]) * LANE + ROW_GAP


def _thickness(state: str) -> int:
    return THIN if state in ("wait", "work") else BAR


def _inset(state: str) -> int:
    return (BAR - _thickness(state)) // 2


def _lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line above each row, so that a bar on the far right is still seen to be its."""
    y = float(TOP) - ROW_GAP / 2
    for row in rows:
        yield tag("line", x1=0, x2=WIDTH, y1=y, y2=y, class_="rule")
        y += _height(row)


def _row(row: Mapping[str, Any], scale: Scale, y: float) -> Iterator[str]:
    count = f" ×{row['count']}" if row["count"] > 1 else ""
    indent = 14 * min(row["depth"], 4)
    name = cut(inert(row["name"]), NAME_LENGTH_MAX - len(count) - indent // 7) + count
    whole = tag("title", safe(f"{row['kind']} {row['name']}{count}"))
    yield tag("text", safe(name) + whole, x=4 + indent, y=y + BAR - 1, class_=f"name name-{row['kind']}")
    for bar in _merged(row["bars"], scale):
        about = tag("title", safe(f"{bar.path or row['name']}: {bar.state}. {cut(inert(bar.about), ABOUT_LENGTH_MAX)}"))
        yield tag(
            "rect",
            about,
            x=bar.x,
            y=y + bar.lane * LANE + _inset(bar.state),
            width=max(bar.width, 2.0),
            height=_thickness(bar.state),
            rx=2,
            class_=f"bar bar-{bar.state}",
        )
    if row["beyond"]:
        yield tag("text", safe(f"+{row['beyond']} more at once"), x=WIDTH - 130, y=y + BAR - 1, class_="note")


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
        about = tag("title", safe(f"nothing ran for {lasting(fold.seconds)}; drawn narrow"))
        yield tag(
            "rect", about, x=fold.left, y=TOP - 6, width=fold.right - fold.left, height=height - TOP, class_="fold"
        )
        yield tag("text", safe(roughly(fold.seconds)), x=middle, y=13, text_anchor="middle", class_="note")


def _ticks(scale: Scale, height: float) -> Iterator[str]:
    for seconds in scale.ticks():
        x = scale.x(seconds)
        yield tag("line", x1=x, x2=x, y1=TOP - 6, y2=height - 4, class_="tick")
        yield tag("text", safe(lasting(seconds)), x=x, y=13, class_="note")


def _marks(marks: Sequence[Mapping[str, Any]], scale: Scale, height: float) -> Iterator[str]:
    """Yield a line at each moment and its sign above it; signs of nearly the same moment stand side by side."""
    free = 0.0
    for mark in marks:
        sign, name = MARKS.get(mark["what"], ("·", "mark-started"))
        x = scale.x(mark["at"])
        free = min(max(x, free), WIDTH - 6.0)
        about = tag("title", safe(f"{mark['what']}: {cut(mark['about'], ABOUT_LENGTH_MAX)}"))
        line = tag("line", x1=x, x2=x, y1=TOP - 6, y2=height - 4)
        yield tag(
            "g", about + line + tag("text", sign, x=free, y=TOP - 12, text_anchor="middle"), class_=f"mark {name}"
        )
        free += MARK_ROOM

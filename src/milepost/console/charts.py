"""Pictures of a task and of days, drawn on the server as SVG: who is asked where, what is written where, how often.

Every text is inert and escaped, wrapped and never cut off. Called by the templates. Pure.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from markupsafe import Markup

from milepost.console.arranging import last_days
from milepost.console.drawing import safe, svg, tag
from milepost.views.inert import inert
from milepost.views.words import lasting

# ── a task's role ───────────────────────────────────────────────────────────────────────────────────

WIDTH = 860
CARD_WIDTH = 500
OUTSIDE_X = 640.0
OUTSIDE_WIDTH = 204
LINE = 16
"""Height of a line of small text."""
GAP = 22
LINE_LENGTH = 72
OUTSIDE_LENGTH = 27
SIGNS = (
    ("approval", "approval"),
    ("review", "review"),
    ("verified by", "verified by"),
    ("a checkpoint because", "checkpoint:"),
    ("in a shadow run", "in a shadow run:"),
)
"""Facts of a call that its card shows, and how they are introduced."""


def role_svg(role: Mapping[str, Any], shown: Mapping[str, Any]) -> Markup:
    """Draw a role definition: the task, its calls in order, and what lies outside of it that they write to."""
    y, parts = 8.0, []
    returns = [f"returns {role['output']}"]
    model = [version for version in role["versions"] if version.startswith("model ")]
    height, card = _card(y, "task", role["task"], [*model, *returns])
    parts.append(card)
    for call in shown["calls"]:
        top = y + height
        y = top + GAP
        height, card = _card(y, call["kind"], call["name"], _signs(call))
        parts += [_down(top, y), card, *_outside(call, y, height)]
    return svg(
        y + height + 8, f"Role definition of {role['task']}; the list below says it in words", parts, width=WIDTH
    )


def _signs(call: Mapping[str, Any]) -> list[str]:
    facts = call["facts"]
    told = [f"{said} {facts[name]}" for name, said in SIGNS[:3] if name in facts]
    if call["kind"] == "step":
        told.append(f"returns {call['output']}")
    return told


def _card(y: float, kind: str, name: str, signs: Sequence[str]) -> tuple[float, str]:
    """Return the height of a card and the card: its kind, its name, a few facts, each as long as it is."""
    lines = [line for sign in signs for line in _wrapped(sign, LINE_LENGTH)]
    height = 34.0 + LINE * len(lines)
    title = tag("tspan", safe(f"{kind} "), class_="card-kind") + tag("tspan", safe(inert(name)), class_="card-name")
    inside = tag("rect", x=8, y=y, width=CARD_WIDTH, height=height, rx=8, class_=f"card card-{kind}")
    inside += tag("rect", x=8, y=y + 8, width=4, height=height - 16, rx=2, class_=f"edge edge-{kind}")
    inside += tag("text", title, x=26, y=y + 22)
    for number, line in enumerate(lines):
        inside += tag("text", safe(line), x=26, y=y + 40 + LINE * number, class_="note")
    return height, inside


def _down(top: float, bottom: float) -> str:
    return tag("path", d=f"M60 {top:.1f}V{bottom - 1:.1f}m-4 -5l4 5l4 -5", class_="arrow")


def _outside(call: Mapping[str, Any], y: float, height: float) -> Iterator[str]:
    """Yield what an effect writes to, with an arrow from its card; the permission it needs stands on it."""
    if call["kind"] != "effect":
        return
    lines = _wrapped(call["facts"].get("provider", "outside"), OUTSIDE_LENGTH)
    box = 16.0 + LINE * len(lines)
    top = y + (height - box) / 2
    middle = y + height / 2
    yield tag("path", d=f"M{8 + CARD_WIDTH} {middle:.1f}H{OUTSIDE_X - 2:.1f}m-6 -4l6 4l-6 4", class_="arrow")
    permission = call["facts"].get("needs permission")
    if permission:
        start = (8 + CARD_WIDTH + OUTSIDE_X) / 2
        yield tag("text", safe(permission), x=start, y=middle - 6, text_anchor="middle", class_="note")
    yield tag("rect", x=OUTSIDE_X, y=top, width=OUTSIDE_WIDTH, height=box, rx=box / 2, class_="outside")
    for number, line in enumerate(lines):
        x = OUTSIDE_X + OUTSIDE_WIDTH / 2
        yield tag("text", safe(line), x=x, y=top + 20 + LINE * number, text_anchor="middle")


def _wrapped(text: str, length: int) -> list[str]:
    return textwrap.wrap(inert(text), length) or [""]


# ── days ────────────────────────────────────────────────────────────────────────────────────────────

CHART_WIDTH = 480
CHART_HEIGHT = 132
FLOOR = 104.0
CEILING = 20.0


def days_svg(days: Sequence[Mapping[str, Any]], what: str, today: str) -> Markup:
    """Draw one number for each of the last days as columns over an axis, the highest and the last named."""
    shown = last_days(days, today, what)
    most = max(number for _, number in shown)
    room = (CHART_WIDTH - 16) / len(shown)
    parts = [tag("line", x1=8, x2=CHART_WIDTH - 8, y1=FLOOR, y2=FLOOR, class_="axis")]
    for place, (name, number) in enumerate(shown):
        parts += _day(8 + place * room, room, name, number, most, what)
        if place in (0, len(shown) // 2, len(shown) - 1):
            middle = 8 + (place + 0.5) * room
            parts.append(
                tag("text", safe(_short_day(name)), x=middle, y=FLOOR + 18, text_anchor="middle", class_="note")
            )
    said = ", ".join(f"{name}: {_said(number, what)}" for name, number in shown if number) or "none"
    label = f"{what.removesuffix('_s').replace('_', ' ')} by day: {said}"
    return svg(CHART_HEIGHT, label, parts, width=CHART_WIDTH, kind="picture chart")


def _day(x: float, room: float, name: str, number: float, most: float, what: str) -> Iterator[str]:
    width, left = room * 0.62, x + room * 0.19
    height = (FLOOR - CEILING) * number / most if most else 0.0
    about = tag("title", safe(f"{name}: {_said(number, what)}"))
    if not number:
        yield tag("rect", about, x=left, y=FLOOR - 2, width=width, height=2, class_="day day-none")
        return
    yield tag("rect", about, x=left, y=FLOOR - max(height, 3), width=width, height=max(height, 3.0), rx=2, class_="day")
    y = FLOOR - max(height, 3) - 5
    yield tag("text", safe(_said(number, what)), x=x + room / 2, y=y, text_anchor="middle", class_="value")


def _said(number: float, what: str) -> str:
    return " ".join(lasting(number).split(" ")[:2]) if what.endswith("_s") else f"{number:.0f}"


def _short_day(name: str) -> str:
    day = date.fromisoformat(name)
    return f"{day.day} {day:%b}"

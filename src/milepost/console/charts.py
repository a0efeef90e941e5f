"""Pictures of a task and of days, drawn on the server as SVG: who is asked where, what is written where, how often.

Every text is inert and escaped, wrapped and never cut off. Called by the templates. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from markupsafe import Markup

from milepost.console.arranging import last_days
from milepost.console.drawing import roughly, safe, svg, tag
from milepost.records.shown import inert

# ── a task's role ───────────────────────────────────────────────────────────────────────────────────

WIDTH = 860
CARD_WIDTH = 500
OUTSIDE_X = 640.0
OUTSIDE_WIDTH = 204
LINE = 16
"""Height of a line of small text."""
GAP = 22
TEXT_ROOM = 464.0
"""Width of the text in a card."""
OUTSIDE_ROOM = 176.0
NARROW, WIDE = 6.6, 11.0
"""Units that a character of small text needs at most, in the fonts there are."""
NAME_SIZE = 0.8
"""Share of the room that a name has: it is written larger."""
SIGNS = ("approval", "review", "verified by")
"""Facts of a call that its card shows."""


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
        height, card = _card(y, call["kind"], call["name"], _signs(call), _box_height(call) + 8)
        parts += [_down(top, y), card, *_outside(call, y, height)]
    return svg(
        y + height + 8, f"Role definition of {role['task']}; the list below says it in words", parts, width=WIDTH
    )


def _signs(call: Mapping[str, Any]) -> list[str]:
    facts = call["facts"]
    told = [f"{name} {facts[name]}" for name in SIGNS if name in facts]
    if call["kind"] == "step":
        told.append(f"returns {call['output']}")
    return told


def _card(y: float, kind: str, name: str, signs: Sequence[str], least: float = 0.0) -> tuple[float, str]:
    """Return the height of a card and the card: its kind, its name, a few facts, each as long as it is."""
    first, *more = wrapped(f"{kind} {name}", TEXT_ROOM * NAME_SIZE)
    lines = [*more, *(line for sign in signs for line in wrapped(sign, TEXT_ROOM))]
    height = max(34.0 + LINE * len(lines), least)
    said = first.removeprefix(f"{kind} ")
    title = tag("tspan", safe(f"{kind} "), class_="card-kind") + tag("tspan", safe(said), class_="card-name")
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
    lines = _provider(call)
    box = _box_height(call)
    top = y + (height - box) / 2
    middle = y + height / 2
    yield tag("path", d=f"M{8 + CARD_WIDTH} {middle:.1f}H{OUTSIDE_X - 2:.1f}m-6 -4l6 4l-6 4", class_="arrow")
    permission = call["facts"].get("needs permission")
    if permission:
        start = (8 + CARD_WIDTH + OUTSIDE_X) / 2
        yield tag("text", safe(permission), x=start, y=middle - 6, text_anchor="middle", class_="note")
    yield tag("rect", x=OUTSIDE_X, y=top, width=OUTSIDE_WIDTH, height=box, rx=min(box / 2, 18.0), class_="outside")
    for number, line in enumerate(lines):
        x = OUTSIDE_X + OUTSIDE_WIDTH / 2
        yield tag("text", safe(line), x=x, y=top + 20 + LINE * number, text_anchor="middle")


def _provider(call: Mapping[str, Any]) -> list[str]:
    return wrapped(call["facts"].get("provider", "outside"), OUTSIDE_ROOM)


def _box_height(call: Mapping[str, Any]) -> float:
    return 16.0 + LINE * len(_provider(call)) if call["kind"] == "effect" else 0.0


def wrapped(text: str, room: float) -> list[str]:
    """Return a text in lines that fit a width, broken between words where it can be; no character is left out."""
    lines, line, left = [], "", room
    for word in re.findall(r"\S+\s*|\s+", inert(text)):
        if line and width_of(word.rstrip()) > left and width_of(word.rstrip()) <= room:
            lines.append(line)
            line, left = "", room
        for character in word:
            if line and width_of(character) > left:
                lines.append(line)
                line, left = "", room
            line, left = line + character, left - width_of(character)
    return [*lines, line]


def width_of(text: str) -> float:
    """Return about how wide a small text is drawn, in units of the picture."""
    return sum(WIDE if character in "mwMW@%—" or not character.isascii() else NARROW for character in text)


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
    return roughly(number) if what.endswith("_s") else f"{number:.0f}"


def _short_day(name: str) -> str:
    day = date.fromisoformat(name)
    return f"{day.day} {day:%b}"

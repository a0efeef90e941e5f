"""Pictures say what their data says, in bounds, with every text inert: they are XML that any reader can parse."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

from milepost.console.charts import days_svg, role_svg, width_of, wrapped
from milepost.console.drawing import BARS, MARKS, WIDTH, legend_svg, timeline_svg
from milepost.console.scale import TICK_ROOM, scale_of

EVIL = '"><script>alert(1)</script>\u202e'
SVG = "{*}"


def bar(start: float, end: float, state: str = "verified", lane: int = 0) -> dict[str, object]:
    return {"path": f"match{EVIL}", "start": start, "end": end, "state": state, "about": EVIL, "lane": lane}


def told(*bars: dict[str, object], now: float = 10.0, marks: tuple[dict[str, object], ...] = ()) -> dict[str, object]:
    row = {"name": f"match{EVIL}", "depth": 1, "kind": "step", "count": 3, "lanes": 2, "beyond": 4, "bars": list(bars)}
    return {"rows": [row], "marks": list(marks), "now": now}


def parsed(picture: str) -> ElementTree.Element:
    """Parse a picture: markup that slipped in would be an element of its own, or no XML."""
    assert "\u202e" not in picture
    root = ElementTree.fromstring(f"<div>{picture}</div>")
    assert [one for one in root.iter() if one.tag == "script"] == []
    return root


def rects(picture: str, name: str) -> list[dict[str, str]]:
    return [one.attrib for one in parsed(picture).iter("rect") if name in one.get("class", "")]


def test_each_kind_of_bar_and_mark_is_drawn_and_explained() -> None:
    """A legend names what is there, and nothing else."""
    bars = [bar(n, n + 1, state) for n, state in enumerate(BARS)]
    marks = tuple({"at": 1.0, "what": what, "about": EVIL} for what in MARKS)
    whole = told(*bars, now=20.0, marks=marks)
    assert len(rects(timeline_svg(whole), "bar")) == len(BARS)
    assert len(parsed(legend_svg(whole)).findall("ul/li")) == len(BARS) + len(MARKS)
    assert len(parsed(legend_svg(told(bar(0, 1)))).findall("ul/li")) == 1


def test_bars_stay_inside_the_picture_and_short_ones_are_seen() -> None:
    drawn = rects(timeline_svg(told(bar(0, 1e-6), bar(9.999999, 10.0, "failed"), bar(-5, 50, "wait", 1))), "bar")
    assert all(float(one["x"]) >= 180 and float(one["x"]) + float(one["width"]) <= WIDTH for one in drawn)
    assert min(float(one["width"]) for one in drawn) >= 2


def test_ten_thousand_steps_are_not_ten_thousand_rectangles() -> None:
    many = [bar(n / 1000, (n + 1) / 1000) for n in range(10_000)]
    assert len(rects(timeline_svg(told(*many)), "bar")) < 1000


def test_signs_of_one_moment_stand_side_by_side() -> None:
    marks = tuple({"at": 5.0, "what": what, "about": ""} for what in ("died", "resumed", "asking"))
    drawn = parsed(timeline_svg(told(bar(0, 10), marks=marks)))
    at = [float(one.get("x", 0)) for one in drawn.iter("text") if one.get("text-anchor") == "middle"]
    assert at[1] - at[0] >= 12
    assert at[2] - at[1] >= 12


def test_labels_of_the_axis_never_cover_each_other_or_a_folded_stretch() -> None:
    for busy, end in (([(0, 3), (500, 503)], 503.0), ([(0, 10)], 10.0), ([(0, 0.1)], 9000.0), ([], 60.0)):
        scale = scale_of(busy, end, left=180, right=984)
        at = [scale.x(seconds) for seconds in scale.ticks()]
        assert all(right - left >= TICK_ROOM for left, right in pairwise(at))
        assert not any(fold.left - TICK_ROOM < x < fold.right for fold in scale.folds for x in at)


def test_a_run_without_records_has_no_picture() -> None:
    assert timeline_svg({"rows": [], "marks": [], "now": 0.0}) == ""


def role_call(kind: str, name: str, **facts: str) -> dict[str, object]:
    return {"kind": kind, "name": name, "output": "str", "facts": facts}


def test_a_role_shows_every_word_of_who_approves_and_where_it_writes() -> None:
    """A picture that cuts off who must approve is worse than none."""
    who = "before it happens 2 of finance, ana@example, ben@example, and whoever else holds the keys of the treasury"
    where = f"the accounting queue of the group {EVIL}"
    calls = [
        role_call("step", "read"),
        role_call(
            "effect",
            "pay",
            provider=where,
            approval=who,
            **{"needs permission": "bank"},
        ),
    ]
    role = {"task": "settle", "output": "str", "versions": ["model small-1"], "calls": calls}
    words = " ".join("".join(one.itertext()) for one in parsed(role_svg(role, {"calls": calls})).iter("text"))
    for word in (*who.split(), "accounting", "group", "bank", "small-1"):
        assert word in words


def test_days_are_columns_over_an_axis_with_their_numbers() -> None:
    drawn = days_svg([{"day": "2026-11-30", "deaths": 3}], "deaths", "2026-11-30")
    assert len(rects(drawn, "day")) == 14
    assert [one.text for one in parsed(drawn).iter("text")][-2:] == ["3", "30 Nov"]
    assert "deaths by day: none" in days_svg([], "deaths", "2026-11-30")


def test_texts_are_wrapped_between_words_where_they_can_be_and_lose_nothing() -> None:
    for text in ("a few words that need lines", "m" * 200, "", "before " + "x" * 100 + " after"):
        lines = wrapped(text, 120.0)
        assert "".join(lines) == text
        assert all(width_of(line.rstrip()) <= 120 for line in lines)
    assert wrapped("one two three four", 70.0) == ["one two ", "three four"]

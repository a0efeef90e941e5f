"""Every page in a real Chromium: nothing fails or leaves this machine, everybody can read it, it fits a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from browser import Visit, a_visit
from running import Console, question_of

WIDTHS = (390, 1280)
PATHS = {
    "inbox": "/inbox",
    "approval": "/question?id={clicks-4}",
    "approval-of-others": "/question?id={pays-3}",
    "in-doubt": "/question?id={asks-1}",
    "hostile-question": "/question?id={hostile}",
    "runs": "/runs",
    "no-runs": "/runs?q=nothing+is+called+so",
    "run": "/run?id=done",
    "run-open": "/run?id=done&open=match",
    "hostile-run": "/run?id=hostile",
    "died-run": "/run?id=died",
    "sealed-run": "/run?id=sealed",
    "step": "/step?run=done&path=read",
    "sealed-journal": "/journal?id=sealed",
    "journal": "/journal?id=done",
    "seals": "/seals?id=done",
    "check": "/check?id=done",
    "shadow": "/shadow?id=hostile-shadow",
    "map": "/map?task=tidy",
    "health": "/health",
}
LOW_CONTRAST = Path(__file__).with_name("low_contrast.js").read_text(encoding="utf-8")
FAULTS = Path(__file__).with_name("faults.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def window(chromium: Any, console: Console, state: Any) -> Iterator[Visit]:
    """Return a window that all pages are looked at in; each test leaves it clean."""
    with a_visit(chromium, console.url, state) as visit:
        yield visit


def _path(visitor: httpx.Client, name: str) -> str:
    path = PATHS[name]
    run = path.partition("{")[2].partition("}")[0]
    return path.replace(f"{{{run}}}", question_of(visitor, run)) if run else path


@pytest.mark.parametrize("name", PATHS)
def test_a_page_works_is_readable_in_both_schemes_and_fits_a_phone(
    window: Visit, visitor: httpx.Client, name: str
) -> None:
    """No error, no violation of its policy, no request to anybody else: it works offline. WCAG AA, also at 390 px."""
    window.page.set_viewport_size({"width": WIDTHS[1], "height": 900})
    assert window.go(_path(visitor, name)).status == 200
    for one in window.page.query_selector_all("details"):
        one.evaluate("one => { one.open = true; }")
    for scheme in ("light", "dark"):
        window.page.emulate_media(color_scheme=scheme)
        assert window.page.evaluate(LOW_CONTRAST) == [], scheme
    for width in WIDTHS:
        window.page.set_viewport_size({"width": width, "height": 900})
        assert window.page.evaluate("document.documentElement.scrollWidth") <= width
        assert window.page.evaluate(FAULTS) == [], width
    window.saw_nothing_bad()


def test_what_is_hard_to_read_or_to_reach_is_noticed(window: Visit) -> None:
    """The judges of the test above are judged: pale words, a heading left out, a field and a button without a name."""
    window.page.emulate_media(color_scheme="light")
    window.go("/runs")
    window.page.evaluate("document.querySelector('h1').style.color = '#999999'")
    more = "document.querySelector('main').append(...['h4', 'input', 'button'].map(e => document.createElement(e)))"
    window.page.evaluate(more)
    assert [said.split(" ")[1] for said in window.page.evaluate(LOW_CONTRAST)] == ["H1.:"]
    told = [said.partition(":")[0] for said in window.page.evaluate(FAULTS)]
    assert told == ["a level of headings is left out", "no label", "no name"]


def test_the_theme_is_chosen_by_a_button_and_kept(window: Visit) -> None:
    """Somebody whose system is light may want it dark, on every page and tomorrow too."""
    window.page.emulate_media(color_scheme="light")
    window.go("/runs")
    paper = "getComputedStyle(document.body).backgroundColor"
    was = window.page.evaluate(paper)
    window.page.get_by_role("button", name="Dark").click()
    assert window.page.evaluate(paper) != was
    window.go("/health")
    assert window.page.evaluate("document.documentElement.dataset.theme") == "dark"
    window.page.get_by_role("button", name="Light").click()
    assert window.page.evaluate(paper) == was
    window.page.evaluate("localStorage.clear()")
    window.saw_nothing_bad()


def test_the_six_rules_come_onto_the_page_of_a_run_by_themselves(window: Visit) -> None:
    """What a resume would do is asked of a process of its own; the page is there before."""
    window.go("/run?id=done")
    rules = window.page.locator(".rules li")
    rules.nth(5).wait_for()
    assert [rules.nth(n).locator("strong").inner_text() for n in (0, 5)] == ["Trust", "Bound"]
    window.saw_nothing_bad()


def test_items_that_are_counted_open_one_by_one(window: Visit) -> None:
    """`match × 12` is a link to the twelve."""
    window.go("/run?id=done")
    window.page.get_by_role("link", name="match × 12").click()
    window.page.get_by_role("link", name="match#12", exact=True).wait_for()
    window.saw_nothing_bad()


def test_a_key_is_shown_short_and_copied_whole(chromium: Any, console: Console, state: Any) -> None:
    """Nobody types a key from a screen."""
    allowed = {"permissions": ["clipboard-read", "clipboard-write"]}
    with a_visit(chromium, console.url, state, **allowed) as visit:
        visit.go("/run?id=done")
        key = visit.page.locator("button.short").first
        key.click()
        visit.page.get_by_text("Copied").wait_for()
        copied = visit.page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith("mp1-")
        assert len(copied) == 36 > len(key.inner_text())


def test_without_scripts_pages_are_read_and_questions_answered(chromium: Any, console: Console, state: Any) -> None:
    """Scripts only make pages follow what happens: where they are off, or did not come, nobody is shut out."""
    with a_visit(chromium, console.url, state, java_script_enabled=False) as visit:
        visit.go("/inbox?run=clicks-5")
        visit.page.get_by_role("heading", level=2).get_by_role("link").click()
        visit.page.get_by_role("button", name="Approve").click()
        visit.page.get_by_role("heading", name="Answered").wait_for()
        visit.go("/run?id=done")
        visit.page.get_by_role("link", name="as a page").wait_for()

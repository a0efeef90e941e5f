"""People in a real Chromium: they answer and see the run end, also at once and by keyboard; attacks come to nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from browser import EVIL, Visit, a_visit, by_token
from running import Console, a_console, question_of

ANA, BEN = "token-of-ana-in-a-browser", "token-of-ben-in-a-browser"


@pytest.fixture
def window(chromium: Any, console: Console, state: Any) -> Iterator[Visit]:
    with a_visit(chromium, console.url, state) as visit:
        yield visit


def resume(filled: Path, run_id: str) -> None:
    """Let a process of its own go on with a run, as a person or `milepost watch` would."""
    command = [sys.executable, "-m", "milepost", "resume", run_id]
    own = {**os.environ, "MILEPOST_STORE": str(filled)}
    done = subprocess.run(command, cwd=filled.parent, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_question_is_answered_and_the_run_is_seen_to_end_without_a_reload(
    window: Visit, visitor: httpx.Client, filled: Path
) -> None:
    """The whole way: inbox, evidence, answer; another process resumes; the page that is open follows."""
    window.go("/inbox?run=clicks-1")
    window.page.get_by_role("heading", level=2).get_by_role("link").click()
    window.page.locator("main").get_by_text("Ana & <b>Ben</b>").first.wait_for()
    window.page.get_by_label("Note").fill("as agreed")
    window.page.get_by_role("button", name="Approve").click()
    window.page.get_by_role("heading", name="Answered").wait_for()
    assert "as agreed" in window.page.locator(".answered").inner_text()
    window.go("/run?id=clicks-1")
    window.page.get_by_text("Live", exact=True).wait_for()
    window.page.evaluate("window.isSame = true")
    resume(filled, "clicks-1")
    window.page.locator("h1 .pill-done").wait_for()
    assert window.page.evaluate("window.isSame") is True
    assert visitor.get("/run.json", params={"id": "clicks-1"}).json()["status"] == "done"
    window.saw_nothing_bad()


def test_a_question_is_answered_by_keyboard_alone(window: Visit) -> None:
    """j to the question, Enter, Tab to the note and the button: no mouse, and what has the focus is seen to have it."""
    window.go("/inbox?run=clicks-2")
    keys = window.page.keyboard
    keys.press("Tab")
    assert focus(window)["text"] == "Skip to content"
    keys.press("j")
    assert focus(window)["tag"] == "A"
    assert focus(window)["outline"] != "none"
    keys.press("Enter")
    window.page.get_by_role("heading", name="Your answer").wait_for()
    tab_to(window, "note")
    keys.type("by hand")
    tab_to(window, "approve")
    assert focus(window)["outline"] != "none"
    keys.press("Enter")
    window.page.get_by_role("heading", name="Answered").wait_for()
    assert "by hand" in window.page.locator(".answered").inner_text()
    window.saw_nothing_bad()


def test_a_changed_request_is_edited_and_never_approved_as_it_was(window: Visit, visitor: httpx.Client) -> None:
    """Edit 100 to 1, press Enter in the note or the green button: 100 was sent. Now only Edit can be pressed."""
    question = question_of(visitor, "edits-4")
    window.go(f"/question?id={question}")
    page, keys = window.page, window.page.keyboard
    page.get_by_label("Note").fill("as said")
    keys.press("Enter")
    assert "Your answer" in page.inner_text("#question")
    page.get_by_text("Edit the request first").click()
    editor = page.get_by_label("Arguments to send instead")
    editor.press("Control+End")
    keys.press("Enter")
    keys.press("Backspace")
    assert page.get_by_role("button", name="Approve").is_enabled()
    editor.fill('{"amount": 1, "to": "Ana"}')
    assert page.get_by_text("You changed the request").is_visible()
    assert [page.get_by_role("button", name=name).is_enabled() for name in ("Approve", "Edit", "Decline")] == [
        False, True, False,
    ]  # fmt: skip
    page.get_by_label("Note").press("Enter")
    page.get_by_role("button", name="put back what was asked").click()
    assert page.get_by_role("button", name="Approve").is_enabled()
    editor.fill('{"amount": 1, "to": "Ana"}')
    page.get_by_label("Note").press("Enter")
    assert visitor.get("/question.json", params={"id": question}).json()["answer"] is None
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("heading", name="Answered").wait_for()
    assert visitor.get("/question.json", params={"id": question}).json()["answer"]["choice"] == "edit"
    window.saw_nothing_bad()


def test_enter_among_the_items_of_a_batch_answers_none(window: Visit, visitor: httpx.Client) -> None:
    window.go("/inbox?run=edits-many")
    box = window.page.get_by_role("checkbox").first
    box.check()
    box.press("Enter")
    window.page.get_by_label("Note").press("Enter")
    window.page.get_by_role("heading", level=1, name="Inbox").wait_for()
    assert window.page.url.endswith("/inbox?run=edits-many")
    assert len(visitor.get("/inbox.json", params={"run": "edits-many"}).json()["questions"]) == 2


FOCUS = """
() => { const one = document.activeElement;
  return {tag: one.tagName, text: one.textContent.trim(), is: one.value === "approve" ? "approve" : one.name || "",
    outline: getComputedStyle(one).outlineStyle}; }
"""


def focus(window: Visit) -> dict[str, str]:
    """Return what has the focus, and how that is shown."""
    found: dict[str, str] = window.page.evaluate(FOCUS)
    return found


def tab_to(window: Visit, wanted: str) -> None:
    for _ in range(60):
        window.page.keyboard.press("Tab")
        if focus(window)["is"] == wanted:
            return
    raise AssertionError(f"the Tab key never reached {wanted}")


# ── several people ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def named(filled: Path) -> Iterator[Console]:
    """Return a console for two people with tokens, over the same store."""
    names = {"ana@example": ANA, "ben@example": BEN}
    lines = [f'"{name}" = "{sha256(token.encode()).hexdigest()}"\n' for name, token in names.items()]
    (filled.parent / "people.toml").write_text("".join(lines))
    (filled.parent / "people.toml").chmod(0o600)
    with a_console(filled, config='[console]\ntokens_file = "people.toml"\n') as running:
        yield running


def test_two_people_answer_at_once_and_the_second_is_told_who_decided(
    chromium: Any, named: Console, visitor: httpx.Client
) -> None:
    """Both have the question open; one was first. Nothing of the other's is lost: it stands beside it."""
    path = f"/question?id={question_of(visitor, 'clicks-3')}"
    ana_state, ben_state = (by_token(chromium, named, token) for token in (ANA, BEN))
    with a_visit(chromium, named.url, ana_state) as ana, a_visit(chromium, named.url, ben_state) as ben:
        for visit in (ana, ben):
            visit.go(path)
        ben.page.get_by_label("Note").fill("I am still thinking")  # what one types is not taken away by news
        ana.page.get_by_role("button", name="Approve").click()
        ana.page.get_by_text("Approve by ana@example").wait_for()
        ben.page.get_by_text("Something changed").wait_for()
        ben.page.get_by_role("button", name="Decline").click()
        told = ben.page.get_by_role("alert")
        told.wait_for()
        assert "ana@example" in told.inner_text()
        ben.go(path)
        assert "Approve by ana@example" in ben.page.locator(".answered").inner_text()
        ana.saw_nothing_bad()


# ── attacks ─────────────────────────────────────────────────────────────────────────────────────────

HOSTILE = (
    "/inbox?run=hostile",
    "/run?id=hostile",
    "/journal?id=hostile",
    "/shadow?id=hostile-shadow",
    "/map?task=hostile",
)


def test_a_hostile_run_is_inert_in_a_browser(window: Visit, visitor: httpx.Client) -> None:
    """SEC-8. Scripts in every field: none runs, nothing is loaded, no element of theirs is there."""
    for path in (*HOSTILE, f"/question?id={question_of(visitor, 'hostile')}"):
        assert window.go(path).status == 200
        window.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        injected = "document.querySelectorAll('main script, main img, main iframe, main [onerror], main b').length"
        assert window.page.evaluate(injected) == 0, path
        window.saw_nothing_bad()


def test_a_name_that_was_rebound_to_this_machine_is_refused(chromium: Any, console: Console, state: Any) -> None:
    """SEC-6. A page of evil.example whose name comes to lead here gets nothing, with whichever cookies."""
    evil = f"http://{EVIL}:{console.port}"
    with a_visit(chromium, evil, state) as visit:
        answer = visit.go("/inbox")
        assert answer.status == 403
        assert "does not answer to the host" in visit.page.locator("body").inner_text()


def test_another_page_cannot_read_or_answer(chromium: Any, console: Console, state: Any, visitor: httpx.Client) -> None:
    """A page from elsewhere fetches and posts: the browser sends no cookie, the console refuses the origin."""
    question = question_of(visitor, "asks-1")
    with a_visit(chromium, console.url, state) as visit:
        visit.page.route(
            "http://elsewhere.example/", lambda route: route.fulfill(body="<p>hello", content_type="text/html")
        )
        visit.page.goto("http://elsewhere.example/")
        form = (
            "([to, question]) => fetch(to, {method: 'POST', mode: 'no-cors', credentials: 'include',"
            " headers: {'content-type': 'application/x-www-form-urlencoded'},"
            " body: `question=${question}&choice=stop&form_key=`}).then(r => r.type, e => 'refused')"
        )
        assert visit.page.evaluate(form, [f"{console.url}/answer", question]) in ("opaque", "refused")
        read = "(to) => fetch(to, {credentials: 'include'}).then(r => r.text(), e => 'refused')"
        assert visit.page.evaluate(read, f"{console.url}/inbox.json") == "refused"
    assert question_of(visitor, "asks-1") == question

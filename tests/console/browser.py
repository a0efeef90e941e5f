"""A real Chromium for the console's pages: visitors who came in, and what their browser saw go wrong.

Debian's, never one that is downloaded; where it is missing the tests say that they are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from running import Console

CHROMIUM = Path("/usr/bin/chromium")
EVIL = "evil.example"
"""A name that the browser takes for this machine, as a rebound DNS answer would make it."""
ARGUMENTS = ("--no-sandbox", f"--host-resolver-rules=MAP {EVIL} 127.0.0.1")
PATIENCE_MS = 20_000
VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));
"""


@contextmanager
def a_chromium() -> Iterator[Any]:
    """Start Chromium; skip where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=str(CHROMIUM), args=[*ARGUMENTS])
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visit:
    """One visitor's browser window, and what it was seen to do."""

    page: Any
    context: Any
    origin: str
    errors: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.context.on("request", self._note)

    def _dismiss(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _note(self, request: Any) -> None:
        if not request.url.startswith((f"{self.origin}/", "data:", "about:")):
            self.elsewhere.append(request.url)

    def go(self, path: str) -> Any:
        """Open a page of the console."""
        return self.page.goto(self.origin + path)

    def saw_nothing_bad(self) -> None:
        """Assert that no script failed or was refused, nothing was asked of others, no dialog opened."""
        assert self.errors == []
        assert self.elsewhere == []
        assert self.dialogs == []
        assert self.page.evaluate("window.violations") == []


@contextmanager
def a_visit(chromium: Any, origin: str, state: Any = None, **more: Any) -> Iterator[Visit]:
    """Open a window with cookies of its own."""
    context = chromium.new_context(storage_state=state, **more)
    context.add_init_script(VIOLATIONS)
    try:
        yield Visit(context.new_page(), context, origin)
    finally:
        context.close()


def by_link(chromium: Any, console: Console) -> Any:
    """Come in by the link that was printed; return the cookies, for windows that follow."""
    with a_visit(chromium, console.url) as visit:
        visit.go(f"/?token={console.next_token()}")
        return visit.context.storage_state()


def by_token(chromium: Any, console: Console, token: str) -> Any:
    """Sign in with a named token; return the cookies."""
    with a_visit(chromium, console.url) as visit:
        visit.go("/signin")
        visit.page.get_by_label("Your token").fill(token)
        visit.page.get_by_role("button", name="Sign in").click()
        visit.page.wait_for_url("**/inbox")
        return visit.context.storage_state()

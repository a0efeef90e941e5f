"""SEC-4, SEC-8, SEC-12: what a model or a provider wrote is text wherever it is shown, and files are only saved."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from contextlib import closing

import httpx2 as httpx
import pytest
from page_parts import Parts
from running import Console, question_of

from milepost.console.app import PAGES
from milepost.console.saying import is_said_whole

HOSTILE = {"id": "hostile", "run": "hostile", "path": "shout"}
TRAVERSALS = (
    "../../../etc/passwd",
    "/etc/passwd",
    "file:///etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "%252e%252e%252fetc%252fpasswd",
    "..\\..\\etc\\passwd",
    "/proc/self/environ",
    "0" * 63 + "/",
    "A" * 64,
    "0" * 64,
    "\x00" * 64,
)


def _shown(visitor: httpx.Client, path: str, **values: str) -> str:
    answer = visitor.get(path, params={**HOSTILE, **values})
    assert answer.status_code == 200, (path, answer.status_code, answer.text[:400])
    return str(answer.text)


def _own(visitor: httpx.Client, path: str) -> dict[str, str]:
    if path == "/shadow":
        return {"id": "hostile-shadow"}
    return {"id": question_of(visitor, "hostile")} if path == "/question" else {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_a_hostile_run_is_inert_on_every_page(visitor: httpx.Client, page) -> None:
    """SEC-8. Markup in names, errors, keys, references, results, models and next actions is shown, never obeyed."""
    text = _shown(visitor, page.path, **_own(visitor, page.path))
    assert Parts(text).dangers() == []
    assert not any(character in text for character in "\u202e\u200b\x1b")


def test_what_is_hidden_in_a_text_is_shown(visitor: httpx.Client) -> None:
    """An override that reorders what one reads, a zero-width space, an escape: each stands there as what it is."""
    text = Parts(_shown(visitor, "/step")).text
    assert "\\u202eevil\\u200b \\x1b[31m" in text
    assert "![x](http://x.invalid)" in text
    assert "<img src=x onerror=alert(1)>" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_the_json_twin_is_plain_ascii_and_says_the_same(visitor: httpx.Client, page) -> None:
    """A terminal that shows it is not moved either; a browser takes it for JSON and nothing else."""
    answer = visitor.get(f"{page.path}.json", params={**HOSTILE, **_own(visitor, page.path)})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.content.isascii()
    assert b"\x1b" not in answer.content
    assert isinstance(answer.json(), dict)


def test_values_of_a_link_come_back_inert(visitor: httpx.Client) -> None:
    """SEC-8. A link somebody made, with markup in each value, shows it as text, in errors too."""
    evil = "\"'><script>alert(1)</script>\u202e"
    right = {"id": "done", "run": "done", "path": "read"}
    for page in PAGES:
        for names in (("q", "task", "path"), ("id", "run", "status", "before", "after", "from")):
            answer = visitor.get(page.path, params={**right, **dict.fromkeys(names, evil)})
            assert Parts(answer.text).dangers() == [], (page.path, names)
            assert "\u202e" not in answer.text
            assert answer.status_code < 500, (page.path, names, answer.status_code)


def test_a_link_that_means_nothing_says_how_to_go_on(visitor: httpx.Client) -> None:
    """What is said of the names of runs and steps helps nobody who mistyped an address."""
    for path in (
        "/runs?status=x",
        "/inbox?from=x",
        "/run",
        f"/runs?q={'x' * 3000}",
        "/shadow?id=hostile-shadow&against=a/b",
    ):
        answer = visitor.get(path)
        assert answer.status_code == 400, path
        assert "go on from the inbox" in answer.text, path


@pytest.mark.parametrize("digest", TRAVERSALS, ids=range(len(TRAVERSALS)))
def test_an_artifact_is_named_by_its_digest_and_by_nothing_else(visitor: httpx.Client, digest: str) -> None:
    """SEC-4. No path ever leads anywhere: what no trusted record of the run points at is not there."""
    answer = visitor.get("/artifact", params={"run": "done", "digest": digest})
    assert answer.status_code == 409 or answer.status_code == 400
    assert "root:" not in answer.text


def test_an_artifact_is_saved_never_shown(visitor: httpx.Client) -> None:
    """SEC-8. Whatever it was recorded as, it is an attachment of bytes, named by us."""
    digest = visitor.get("/step.json", params=HOSTILE).json()["output"]["digest"]
    answer = visitor.get("/artifact", params={"run": "hostile", "digest": digest})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment; filename=")
    assert answer.headers["content-security-policy"].startswith("sandbox")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "<script>" in answer.text  # whole and as it is
    assert visitor.get("/artifact", params={"run": "done", "digest": digest}).status_code == 409


def test_a_run_id_is_a_name_never_a_path_or_an_option(console: Console) -> None:
    """SEC-4, SEC-15. It reaches a query and, behind `--`, a child's arguments."""
    with closing(console.visitor()) as client:
        for run_id in ("--help", "-c", "../done", "done%00", "' or 1=1 --", "done/../hostile", "*"):
            assert client.get("/check", params={"id": run_id}).status_code == 404
            assert client.get("/run", params={"id": run_id}).status_code == 404


def test_what_is_approved_is_seen_whole_not_its_summary() -> None:
    """SEC-10. A line that leaves some of a request out does not stand alone: the exact request is open below it."""
    assert is_said_whole({"arguments": {"to": "Ana", "amount": 7}})
    assert not is_said_whole({"arguments": {"to": "Ana", "lines": [1, 2]}})
    assert not is_said_whole({"arguments": {"to": "Ana", "more": {"to": "Eve"}}})
    assert not is_said_whole({"arguments": {"note": "x" * 200, "to": "Eve"}})


def test_the_foreign_script_is_the_one_whose_digest_the_page_names(visitor: httpx.Client) -> None:
    """A browser refuses another file; so a change of htmx is a change of this page, seen in review."""
    scripts = {given["src"]: given for tag, given in Parts(visitor.get("/runs").text).tags if tag == "script"}
    algorithm, _, expected = scripts["/static/htmx.min.js"]["integrity"].partition("-")
    served = visitor.get("/static/htmx.min.js").content
    assert b64encode(hashlib.new(algorithm, served).digest()).decode() == expected
    assert b"htmx" in served

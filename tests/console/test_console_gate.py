"""SEC-6 and SEC-7: nobody comes in unproven, by any route; no other page speaks for a visitor; nothing is too large."""

from __future__ import annotations

import http.client
import signal
import socket
from contextlib import closing
from pathlib import Path

import httpx2 as httpx
import pytest
from running import Console, a_console, form_key, question_of, send_answer

from milepost.console.app import PAGES

ROUTES = ["/", *(page.path for page in PAGES), *(f"{page.path}.json" for page in PAGES), "/artifact", "/events"]
DISGUISES = ("{}", "{}/health", "/{}", "{}%2f", "{}/", "/static/..{}", "{}?token=wrong")
EVIL_HOSTS = (
    "evil.example",
    "evil.example:{port}",
    "127.0.0.1.evil.example:{port}",
    "localhost:1",
    "",
    "127.0.0.1",
    "a@127.0.0.1:{port}",
)


@pytest.mark.parametrize("route", ROUTES)
def test_no_route_shows_anything_to_somebody_unproven(console: Console, route: str) -> None:
    """SEC-6. A new page cannot be forgotten: the list is the app's own. Endings and disguises open nothing."""
    with console.browser() as stranger:
        for disguise in DISGUISES if route in ("/inbox", "/run.json", "/artifact") else ("{}", "{}/health"):
            answer = stranger.get(disguise.format(route), params={"id": "done", "run": "done", "path": "read"})
            assert answer.status_code in (401, 404), (disguise, answer.status_code)
            assert "milepost_console" not in answer.headers.get("set-cookie", "")
            assert "tidy" not in answer.text


def test_every_route_of_the_app_is_in_that_list(console: Console) -> None:
    """The list above is complete: what else the app answers is open on purpose, or takes forms only."""
    assert {page.path for page in PAGES} <= set(ROUTES)
    with console.browser() as stranger:
        assert stranger.get("/signin").status_code == 200
        assert stranger.get("/static/style.css").status_code == 200
        assert stranger.get("/static/../pages/run.py").status_code in (401, 404)


@pytest.mark.parametrize("host", EVIL_HOSTS)
def test_a_rebound_host_is_refused(console: Console, visitor: httpx.Client, host: str) -> None:
    """SEC-7. A page of another name that comes to lead to 127.0.0.1 gets nothing, cookie or not."""
    answer = visitor.get("/inbox", headers={"host": host.format(port=console.port)})
    assert answer.status_code == 403
    assert "form_key" not in answer.text


def test_the_other_names_of_this_machine_are_its_own(console: Console, visitor: httpx.Client) -> None:
    """`localhost` in the address bar works as 127.0.0.1 does, whatever its case."""
    for name in (f"localhost:{console.port}", f"LOCALHOST:{console.port}", f"[::1]:{console.port}"):
        assert visitor.get("/inbox.json", headers={"host": name}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", "https://127.0.0.1", "http://localhost:1", "file://"]
)
def test_a_form_of_another_page_is_refused(visitor: httpx.Client, origin: str) -> None:
    """SEC-7. A foreign page can make a browser send a form; it cannot make it lie about where it comes from."""
    question = question_of(visitor, "asks-1")
    fields = {"form_key": form_key(visitor), "question": question, "choice": "stop"}
    headers = {"origin": origin} if origin else {}
    assert visitor.post("/answer", data=fields, headers=headers).status_code == 403
    assert visitor.get("/question.json", params={"id": question}).json()["answer"] is None


@pytest.mark.parametrize("key", ["", "wrong", "é"])
def test_a_form_without_its_key_is_refused(visitor: httpx.Client, key: str) -> None:
    """SEC-7. Nobody who has not read a page of this visitor's can answer for them."""
    question = question_of(visitor, "asks-1")
    own = {"origin": str(visitor.base_url).rstrip("/")}
    fields = {"form_key": key, "question": question, "choice": "stop"}
    assert visitor.post("/answer", data=fields, headers=own).status_code == 403
    assert visitor.get("/question.json", params={"id": question}).json()["answer"] is None


def test_reading_never_answers(visitor: httpx.Client) -> None:
    """SEC-7. A link, an image or a prefetch changes nothing."""
    question = question_of(visitor, "asks-1")
    values = {"question": question, "choice": "stop", "form_key": form_key(visitor)}
    assert visitor.get("/answer", params=values).status_code in (404, 405)
    assert visitor.get("/question.json", params={"id": question}).json()["answer"] is None


def test_a_link_lets_in_once_and_its_token_is_nowhere_else(console: Console) -> None:
    """A token in a browser's list of visited pages opens nothing any more; the cookie is out of reach of scripts."""
    token = console.next_token()
    with console.browser() as client:
        first = client.get("/", params={"token": token, "id": "x"})
        assert first.status_code == 303
        assert first.headers["location"] == "/?id=x"
        cookie = first.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert "path=/" in cookie
        assert token not in first.text + client.get("/inbox").text
    with console.browser() as other:
        assert other.get("/", params={"token": token}).status_code == 401
        assert other.head("/", params={"token": token}).status_code == 401


def test_a_link_leads_nowhere_else(console: Console) -> None:
    """What follows the token is a path of this console, never another host."""
    with console.browser() as client:
        for path in ("//evil.example/", "/\\evil.example", "/%0d%0aset-cookie:x=1"):
            answer = client.get(path, params={"token": console.next_token()})
            assert answer.headers.get("location", "/").startswith("/")
            assert not answer.headers.get("location", "/").startswith(("//", "/\\"))
            assert "x=1" not in answer.headers.get("set-cookie", "")


def test_a_link_from_elsewhere_is_asked_once_more_from_here(visitor: httpx.Client, console: Console) -> None:
    """A strict cookie is not sent with a link in a mail; the browser asks again by itself, and is then let in."""
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    with console.browser() as stranger:
        answer = stranger.get("/run?id=done", headers=headers)
        assert answer.status_code == 200
        assert answer.headers["refresh"] == "0; url=/run?id=done"
        assert answer.text == ""


def test_after_signing_out_the_cookie_opens_nothing(console: Console) -> None:
    """A stolen cookie ends with the session."""
    with closing(console.visitor()) as client:
        cookie = client.cookies[console.cookie]
        own = {"origin": console.url}
        assert client.post("/signout", data={"form_key": form_key(client)}, headers=own).status_code == 303
    with console.browser(cookies={console.cookie: cookie}) as thief:
        assert thief.get("/inbox").status_code == 401


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND"])
def test_other_methods_are_not_answered(visitor: httpx.Client, method: str) -> None:
    """There is nothing to preflight: no other origin is ever allowed."""
    answer = visitor.request(method, "/inbox")
    assert answer.status_code == 405
    assert "access-control-allow-origin" not in answer.headers


def test_head_says_what_get_would_without_its_body(visitor: httpx.Client) -> None:
    answer = visitor.head("/inbox")
    assert answer.status_code == 200
    assert answer.text == ""


def test_a_form_too_large_is_refused_before_it_is_read_whole(console: Console, visitor: httpx.Client) -> None:
    """SEC-17. Neither a length that is told nor chunks without one fill the memory."""
    own = {"origin": console.url, "content-type": "application/x-www-form-urlencoded"}
    large = b"note=" + b"x" * (2 * 1024 * 1024)
    assert visitor.post("/answer", content=large, headers=own).status_code == 413
    chunks = (b"x" * 65536 for _ in range(40))
    assert visitor.post("/answer", content=chunks, headers=own).status_code == 413
    many = "&".join(f"a{n}=1" for n in range(5000))
    assert visitor.post("/answer", content=many, headers=own).status_code == 400
    assert visitor.post("/answer", json={"a": 1}, headers={"origin": console.url}).status_code == 415


def test_a_line_that_is_no_request_is_answered_and_ends(console: Console) -> None:
    """What speaks no HTTP, or too much of it, is cut off."""
    for line in (b"\x16\x03\x01 hello\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"x: " + b"a" * 100_000 + b"\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", console.port), timeout=10) as raw:
            raw.sendall(line)
            assert raw.recv(64).startswith(b"HTTP/1.1 400")
    with socket.create_connection(("127.0.0.1", console.port), timeout=10) as raw:
        raw.sendall(f"GET /inbox HTTP/1.1\r\nHost: 127.0.0.1:{console.port}\r\nHost: evil.example\r\n\r\n".encode())
        assert raw.recv(64).split()[1] in (b"400", b"403", b"401")


def test_every_answer_carries_the_headers_that_keep_it_inert(console: Console, visitor: httpx.Client) -> None:
    """SEC-8. Pages, errors, files, refusals: none may run an inline script, be framed, sniffed or kept."""
    answers = [visitor.get(path) for path in ("/inbox", "/nope", "/run?id=nope", "/static/style.css", "/inbox.json")]
    answers += [visitor.get("/inbox", headers={"host": "evil.example"}), visitor.request("PUT", "/inbox")]
    with console.browser() as stranger:
        answers.append(stranger.get("/inbox"))
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "server" not in answer.headers


def test_what_a_visitor_types_as_their_name_is_not_who_answered(console: Console, visitor: httpx.Client) -> None:
    """SEC-10. The name in the record is the account's that started the console."""
    question = question_of(visitor, "asks-2")
    forged = {"by": "ceo@example", "identity": "ceo", "name": "ceo", "door": "cli", "at": "2020-01-01T00:00:00+00:00"}
    assert send_answer(visitor, question=question, choice="not-applied", note="checked", **forged).status_code == 303
    answer = visitor.get("/question.json", params={"id": question}).json()["answer"]
    assert "ceo" not in answer["by"]
    assert not answer["at"].startswith("2020")
    assert answer["note"] == "checked"
    headers = {"x-forwarded-user": "ceo", "x-forwarded-for": "10.0.0.9", "authorization": "Bearer ceo"}
    assert "ceo" not in visitor.get("/inbox", headers=headers).text


def test_an_open_page_is_told_that_something_changed_and_never_what(console: Console, visitor: httpx.Client) -> None:
    """Server-sent events carry no content: whoever hears one asks for the page, through the gate, again."""
    connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=20)
    connection.request("GET", "/events", headers={"cookie": f"{console.cookie}={visitor.cookies[console.cookie]}"})
    answer = connection.getresponse()
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.readline() == b"retry: 3000\n"
    question = question_of(visitor, "asks-3")
    assert send_answer(visitor, question=question, choice="not-applied").status_code == 303
    told = b""
    while b"event: changed" not in told:
        told += answer.readline()
    assert answer.readline() == b"data: 1\n"
    answer.close()
    connection.close()


def test_it_ends_at_once_and_in_silence_although_a_page_is_open(filled: Path) -> None:
    """Ctrl-C is no error; a live page that is open somewhere does not hold it up."""
    with a_console(filled) as running, closing(running.visitor()) as visitor:
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
        cookie = f"{running.cookie}={visitor.cookies[running.cookie]}"
        connection.request("GET", "/events", headers={"cookie": cookie})
        answer = connection.getresponse()
        assert answer.readline() == b"retry: 3000\n"
        running.process.send_signal(signal.SIGINT)
        said = running.process.communicate(timeout=20)[1]
        answer.close()
        connection.close()
    assert running.process.returncode == 128 + signal.SIGINT
    assert "Traceback" not in said
    assert "cancelled" not in said.lower()

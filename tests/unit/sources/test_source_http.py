"""A URL is told by ETag, Last-Modified or body, over real connections to a server on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

import pytest

from milepost.errors import BadOption, SourceUnavailable
from milepost.records.secret import Secret
from milepost.sources import Http, Observation, changes, http_answer, key_of, name_of, observe

Answer: TypeAlias = tuple[int, dict[str, str], bytes]


class Page(BaseHTTPRequestHandler):
    """Answers what the test put into `server.answers`, and remembers what it was asked."""

    server: Server

    def do_GET(self) -> None:
        self.server.asked.append((self.command, self.path, dict(self.headers)))
        status, headers, body = self.server.answers.get((self.command, self.path), (404, {}, b""))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        self.answers: dict[tuple[str, str], Answer] = {}
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def put(self, path: str, answer: Answer, *methods: str) -> None:
        for method in methods or ("HEAD", "GET"):
            self.answers[method, path] = answer

    def methods(self) -> list[str]:
        return [method for method, _, _ in self.asked]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def running() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


server = pytest.fixture(running, name="server")
other_server = pytest.fixture(running, name="other_server")


def look(url: str, **options: Any) -> Observation:
    return observe(Http(url, **options).descriptor(), seal_key=b"key")


def test_etag_decides_without_the_body(server: Server) -> None:
    server.put("/p", (200, {"ETag": '"1"'}, b"one"))
    before = look(server.url + "/p")
    server.put("/p", (200, {"ETag": '"1"'}, b"another body"))
    same = look(server.url + "/p")
    server.put("/p", (200, {"ETag": '"2"'}, b"another body"))
    assert same.fingerprint == before.fingerprint
    assert changes(before, look(server.url + "/p")) == ["content changed (3 → 12 bytes)"]
    assert server.methods() == ["HEAD", "HEAD", "HEAD"]


def test_last_modified_counts_where_there_is_no_etag(server: Server) -> None:
    seen = set()
    for day, body in (("01", b"1"), ("02", b"1"), ("02", b"12")):
        server.put("/p", (200, {"Last-Modified": f"Sun, {day} Nov 2026 00:00:00 GMT"}, body))
        seen.add(look(server.url + "/p").fingerprint)
    assert len(seen) == 3
    assert "GET" not in server.methods()


def test_body_decides_where_there_is_no_validator_or_no_head(server: Server) -> None:
    server.put("/p", (405, {}, b""), "HEAD")
    server.put("/p", (200, {}, b"one"), "GET")
    before = look(server.url + "/p")
    assert look(server.url + "/p") == before
    server.put("/p", (200, {}, b"two"), "GET")
    assert changes(before, look(server.url + "/p")) == ["content changed (3 bytes as before)"]


@pytest.mark.parametrize("status", [404, 410])
def test_gone_is_absent(server: Server, status: int) -> None:
    server.put("/p", (status, {}, b"gone"))
    assert look(server.url + "/p").fingerprint is None


@pytest.mark.parametrize("status", [304, 401, 403, 429, 500, 503])
def test_every_other_status_cannot_be_told(server: Server, status: int) -> None:
    server.put("/p", (status, {"ETag": '"1"'}, b""))
    with pytest.raises(SourceUnavailable, match=f"answered {status}"):
        look(server.url + "/p")


def test_nobody_listening_cannot_be_told() -> None:
    with Server() as server:
        url = server.url
    with pytest.raises(SourceUnavailable, match="refused"):
        look(url)


def test_redirect_is_followed_as_it_was_asked(server: Server) -> None:
    server.put("/old", (302, {"Location": "/new page"}, b""))
    server.put("/new%20page", (200, {"ETag": '"1"'}, b""))
    assert look(server.url + "/old").fingerprint is not None
    assert server.methods() == ["HEAD", "HEAD"]


def test_redirects_are_bounded(server: Server) -> None:
    server.put("/p", (307, {"Location": "/p"}, b""))
    with pytest.raises(SourceUnavailable, match="more than 5 redirects"):
        look(server.url + "/p")
    assert len(server.asked) == 6


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:,x", "http://u:p@127.0.0.1/"])
def test_redirect_to_anything_but_http_is_refused(server: Server, target: str) -> None:
    server.put("/p", (301, {"Location": target}, b""))
    with pytest.raises(SourceUnavailable, match="redirects elsewhere") as caught:
        look(server.url + "/p")
    assert "u:p" not in str(caught.value)


def test_credentials_do_not_follow_a_redirect_to_another_server(
    server: Server, other_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "Bearer s3cret-value")
    server.put("/p", (302, {"Location": other_server.url + "/p"}, b""))
    other_server.put("/p", (200, {"ETag": '"1"'}, b""))
    source = Http(server.url + "/p", headers={"Authorization": Secret("TOKEN"), "Accept": "text/csv"})
    assert "s3cret" not in str(source.descriptor())
    observe(source.descriptor(), seal_key=None)
    assert server.asked[0][2]["Authorization"] == "Bearer s3cret-value"
    assert "Authorization" not in other_server.asked[0][2]


def test_secret_that_is_not_set_cannot_be_told(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOKEN", raising=False)
    with pytest.raises(SourceUnavailable, match="TOKEN is not set"):
        look(server.url, headers={"Authorization": Secret("TOKEN")})


def test_body_is_bounded_in_size(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_answer, "BODY_SIZE_MAX", 10)
    server.put("/p", (200, {}, b"x" * 11))
    with pytest.raises(SourceUnavailable, match="larger than 10 bytes"):
        look(server.url + "/p")


def test_body_that_drips_for_ever_is_given_up() -> None:
    """Each piece arrives in time; only a bound on the whole ends it."""

    class Dripping:
        def read1(self, n: int = -1, /) -> bytes:
            return b"x"

    ticks = iter(range(1000))
    with pytest.raises(TimeoutError, match="not complete after 5 seconds"):
        http_answer.body_digest(Dripping(), 5, lambda: float(next(ticks)))


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("file:///etc/passwd", "scheme 'file'"),
        ("ftp://example.org/x", "scheme 'ftp'"),
        ("http://", "with a host"),
        ("example.org", "with a host"),
        ("https://user:hunter2@example.org/", "holds credentials"),
        ("http://[::1", "http or https URL"),
        ("http://example.org:99999/", "out of range"),
        ("http://example.org/a b", "percent-encode"),
        ("http://example.org/\r\nX: y", "percent-encode"),
        ("http://exämple.org/", "percent-encode"),
    ],
)
def test_url_that_cannot_be_asked_is_refused_at_declaration(url: str, reason: str) -> None:
    with pytest.raises(BadOption, match=reason) as caught:
        Http(url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"Authorization": "Bearer x"}, "would be recorded"),
        ({"cookie": "a=b"}, "would be recorded"),
        ({"X-A": "1\r\nX-B: 2"}, "one line"),
        ({"X-A": 7}, "one line"),
    ],
)
def test_header_that_must_not_be_recorded_is_refused(headers: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadOption, match=reason):
        Http("https://example.org", headers=headers)


@pytest.mark.parametrize("timeout_s", [0, -1, 601, float("nan")])
def test_timeout_is_bounded(timeout_s: float) -> None:
    with pytest.raises(BadOption, match="timeout_s"):
        Http("https://example.org", timeout_s=timeout_s)


def test_descriptor_holds_what_is_needed_to_ask_again_and_its_name_no_query() -> None:
    plain = Http("https://example.org/a?token=abc").descriptor()
    assert plain == {"kind": "http", "url": "https://example.org/a?token=abc"}
    assert name_of(plain) == "GET https://example.org/a?…"
    other = Http("https://example.org/a?token=abc", headers={"Accept": "text/csv"}, timeout_s=3).descriptor()
    assert (other["headers"], other["timeout_s"]) == ({"Accept": "text/csv"}, 3)
    assert key_of(other) != key_of(plain)

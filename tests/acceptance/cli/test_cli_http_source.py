"""A page as a source, over a real server in a process of its own: what a resume does when it changed or is away."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_shell import Shell

PLAN = """
import os
import sys
from milepost import Http, step, task

@step(sources=[Http(os.environ["PRICES_URL"])])
def read_prices() -> int:
    print("reading", file=sys.stderr)
    return 1

@step
def write_offer(prices: int) -> int:
    if os.environ.get("FAIL_OFFER"):
        raise RuntimeError("not yet")
    return prices + 1

@task
def offer() -> int:
    return write_offer(read_prices())
"""
SERVER = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

class Page(BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.send_response(200)
        self.send_header("ETag", Path("etag").read_text())
        self.send_header("Content-Length", "5")
        self.end_headers()

    def log_message(self, *_):
        pass

server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Page)
print(server.server_port, flush=True)
server.serve_forever()
"""


class Prices:
    """A page with an ETag, served on loopback."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, "0"
        self.show('"1"')
        self.come_back()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/prices"

    def show(self, etag: str) -> None:
        (self._folder / "etag").write_text(etag)

    def come_back(self) -> None:
        command = [sys.executable, "-c", SERVER, self._port]
        self._process = subprocess.Popen(command, cwd=self._folder, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._port = self._process.stdout.readline().strip()

    def go_away(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


@pytest.fixture
def prices(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prices]:
    served = Prices(tmp_path_factory.mktemp("prices"))
    yield served
    served.go_away()


@pytest.fixture
def stopped(shell: Shell, prices: Prices) -> Shell:
    """A run that read the page, and failed after it."""
    (shell.folder / "offers.py").write_text(PLAN, encoding="utf-8")
    shell.environ |= {"PRICES_URL": prices.url, "no_proxy": "*"}
    ended = shell.run("run", "offers.py:offer", "--run-id", "one", FAIL_OFFER="1")
    assert (ended.status, ended.err.count("reading")) == (1, 1)
    return shell


def test_an_unchanged_page_is_not_read_again(stopped: Shell) -> None:
    ended = stopped.run("resume", "one")
    assert (ended.status, ended.out, ended.err.count("reading")) == (0, "2\n", 0)


def test_a_changed_page_is_a_question_and_redo_reads_it_again(stopped: Shell, prices: Prices) -> None:
    """What was made of the old page is neither used nor thrown away in silence."""
    prices.show('"2"')
    ended = stopped.run("resume", "one")
    assert (ended.status, ended.err.count("reading")) == (4, 0)
    assert f"{prices.url} changed since read_prices used it" in ended.err
    assert stopped.run("answer", stopped.question(), "redo").status == 0
    ended = stopped.run("resume", "one")
    assert (ended.status, ended.out, ended.err.count("reading")) == (0, "2\n", 1)


def test_a_page_that_cannot_be_asked_is_6_and_the_run_goes_on_when_it_can(stopped: Shell, prices: Prices) -> None:
    """Away is not changed: nobody is asked to decide about a server that does not answer."""
    prices.go_away()
    ended = stopped.run("resume", "one")
    assert (ended.status, ended.err.count("reading")) == (6, 0)
    assert f"source-unavailable: GET {prices.url} cannot be read" in ended.err
    assert stopped.run("inbox", "--json").json["questions"] == []
    prices.come_back()
    assert stopped.run("resume", "one").status == 0

"""A real console in a process of its own, those who visit it, and the forms they send."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from re import search

import httpx2 as httpx

PLANS = Path(__file__).with_name("plans.py")


@dataclass
class Console:
    """A console that runs: its address, its store, what it was started with."""

    url: str
    token: str
    port: int
    store: Path
    process: subprocess.Popen[str]
    said: list[str] = field(default_factory=list)

    @property
    def cookie(self) -> str:
        """Return the name of its cookie: its own, for browsers send a host's cookies to all its ports."""
        return f"milepost_console_{self.port}"

    def browser(self, **more: object) -> httpx.Client:
        """Return a client without cookies."""
        return httpx.Client(base_url=self.url, timeout=20, **more)  # type: ignore[arg-type]

    def next_token(self) -> str:
        """Return the token of the link that was printed last."""
        if self.token:
            token, self.token = self.token, ""
            return token
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if "?token=" in line:
                return line.rpartition("?token=")[2].strip()
        raise AssertionError("no link was printed")

    def visitor(self) -> httpx.Client:
        """Return a client that came in by a link."""
        client = self.browser(follow_redirects=True)
        assert client.get("/", params={"token": self.next_token()}).status_code == 200
        client.follow_redirects = False
        return client


@contextmanager
def a_console(store: Path, *arguments: str, config: str = "", **environ: str) -> Iterator[Console]:
    """Start `milepost ui`, hand it out once it listens, and end it as Ctrl-C would, whatever happens meanwhile.

    `config` is what milepost.toml says while it starts.
    """
    file = store.with_name("milepost.toml")
    file.write_text(config, encoding="utf-8")
    try:
        running = _started(store, *arguments, **environ)
    finally:
        file.unlink()
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.send_signal(signal.SIGINT)
            running.process.communicate(timeout=20)


def _started(store: Path, *arguments: str, **environ: str) -> Console:
    command = [sys.executable, "-m", "milepost", "ui", "--port", "0", "--no-open", "--json", *arguments]
    own = {**os.environ, "MILEPOST_STORE": str(store), **environ}
    process = subprocess.Popen(
        command, cwd=store.parent, env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.startswith('{"url"'):
        raise AssertionError(line + "".join(process.communicate()))
    told = json.loads(line)
    url, _, token = told["url"].partition("/?token=")
    return Console(url, token, told["port"], store, process)


def form_key(client: httpx.Client) -> str:
    """Return the key that this visitor's forms carry."""
    found = search(r'name="form_key" value="([^"]+)"', client.get("/inbox").text)
    assert found is not None
    return unescape(found[1])


def send_answer(client: httpx.Client, **fields: str | list[str]) -> httpx.Response:
    """Answer as a page's form would."""
    own = str(client.base_url).rstrip("/")
    return client.post("/answer", data={"form_key": form_key(client), **fields}, headers={"origin": own})


def question_of(client: httpx.Client, run_id: str) -> str:
    """Return the open question of a run."""
    found: str = client.get("/inbox.json", params={"run": run_id}).json()["questions"][0]["question_id"]
    return found

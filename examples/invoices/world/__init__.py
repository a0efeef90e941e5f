"""The outside world of the invoice example: accounting queue, mail provider and model, each a real process.

`start_world` is what tests, drill and demo call; `lay_out` puts the carried month where its task runs. The processes
belong to their starter: they outlive a SIGKILL of the task that uses them and end with the starter, however that dies.
Everything listens on 127.0.0.1 only.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from invoices.world.behaviour import CHARACTERS, Behaviour, Lookup

__all__ = ["CHARACTERS", "MONTH", "Behaviour", "Lookup", "World", "WorldNotReady", "lay_out", "start_world"]

READY_S_MAX = 60.0
STOP_S_MAX = 10.0
ANSWER_S_MAX = 30.0
LOCAL_MODEL = "local-rules"
MONTH = Path(__file__).resolve().parents[1] / "month"


class WorldNotReady(Exception):
    """A process of the world did not come up; the message carries the last thing it printed."""

    code = "world-not-ready"
    hint = "Read the log named in the message; a port that is taken and a missing package are the usual causes."

    def __init__(self, *, name: str, log: Path, found: str) -> None:
        self.name, self.log, self.found = name, log, found
        super().__init__(f"{name}: expected a ready line within {READY_S_MAX:g} s, found {found} (log: {log}).")


@dataclass(frozen=True)
class World:
    """Where everything is, and how to look at it from outside the task."""

    accounting_url: str
    smtp_host: str
    smtp_port: int
    sent: Path
    model_url: str

    def ledger(self) -> dict[str, Any]:
        """Give the accounting queue's entries and arrivals in order, and the sends seen per key."""
        return self._ask("GET", f"{self.accounting_url}/ledger")

    def behave(self, **changes: Any) -> dict[str, Any]:
        """Change the accounting queue's character while it runs; POSTs are counted from 1 again."""
        return self._ask("POST", f"{self.accounting_url}/behaviour", changes)

    def misbehave(self, *trouble: str) -> dict[str, Any]:
        """Order trouble for the next model calls, by the names in `world/model.py`."""
        return self._ask("POST", f"{self.model_url}/misbehave", {"next": list(trouble)})

    def model_calls(self) -> int:
        """Count the model calls carried out since the world started."""
        return int(self._ask("GET", f"{self.model_url}/calls")["calls"])

    def sent_mails(self) -> list[bytes]:
        """Give the mails the provider accepted, in order."""
        paths = [path for part in ("new", "cur") for path in (self.sent / part).iterdir()]
        return [path.read_bytes() for path in sorted(paths, key=lambda path: path.name)]

    def environment(self) -> dict[str, str]:
        """Give the variables that make the task use this world, and its model instead of a real one."""
        return {
            "INVOICES_ACCOUNTING_URL": self.accounting_url,
            "INVOICES_SMTP": f"{self.smtp_host}:{self.smtp_port}",
            "INVOICES_SENT": str(self.sent.absolute()),
            "INVOICES_MODEL": LOCAL_MODEL,
            "ANTHROPIC_BASE_URL": self.model_url,
            "ANTHROPIC_API_KEY": LOCAL_MODEL,
        }

    def _ask(self, method: str, url: str, document: object = None) -> dict[str, Any]:
        content = None if document is None else json.dumps(document).encode()
        # The library's plain client, without proxies: this package is imported by each world process at its start.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(urllib.request.Request(url, content, method=method), timeout=ANSWER_S_MAX) as answer:
            found: dict[str, Any] = json.load(answer)
        return found


def lay_out(folder: Path, mail_count: int) -> None:
    """Put the first mails of the carried month and its orders into a folder. Crash: a part of them."""
    (folder / "mail").mkdir(parents=True)
    for mail in sorted((MONTH / "mail").iterdir())[:mail_count]:
        shutil.copy(mail, folder / "mail" / mail.name)
    shutil.copy(MONTH / "orders.sqlite", folder / "orders.sqlite")


@contextmanager
def start_world(
    folder: Path, *, character: str | None = None, smtp_silent_on: tuple[int, ...] = (), **behaviour: Any
) -> Iterator[World]:
    """Start the three processes over `folder`, give their addresses, stop them on the way out.

    `character` is a name of `CHARACTERS`; `behaviour` are fields of `Behaviour` that differ from it. A folder used
    before keeps its ledger and its sent mail.

    Raises:
        WorldNotReady: a process ended, or said nothing in time.
        ValueError: `behaviour` names an unknown field or a value of another type.
    """
    folder.mkdir(parents=True, exist_ok=True)
    character_of = CHARACTERS[character] if character else Behaviour()
    character_of.changed(behaviour)
    named = ["--character", character] if character else []
    accounting = ["--db", str(folder / "accounting.sqlite"), *named, "--behaviour", json.dumps(behaviour)]
    smtp = ["--sent", str(folder / "sent"), "--silent-on", ",".join(map(str, smtp_silent_on))]
    with ExitStack() as started:
        arguments = {"accounting": accounting, "smtp": smtp, "model": list[str]()}
        processes = {name: started.enter_context(_running(name, given, folder)) for name, given in arguments.items()}
        ports = {name: _ready(name, process, folder) for name, process in processes.items()}
        yield World(
            accounting_url=f"http://127.0.0.1:{ports['accounting']}",
            smtp_host="127.0.0.1",
            smtp_port=ports["smtp"],
            sent=folder / "sent",
            model_url=f"http://127.0.0.1:{ports['model']}",
        )


@contextmanager
def _running(name: str, arguments: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with open(_log(folder, name), "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", f"invoices.world.{name}", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=_environment(),
            # Its own session: Ctrl-C at the demo reaches the demo, which then stops the world in order.
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _stop(process)


def _environment() -> Mapping[str, str]:
    package_home = str(Path(__file__).resolve().parents[2])
    inherited = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([package_home, *([inherited] if inherited else [])])}


def _ready(name: str, process: subprocess.Popen[bytes], folder: Path) -> int:
    assert process.stdout is not None
    log = _log(folder, name)
    readable, _, _ = select.select([process.stdout], [], [], READY_S_MAX)
    if not readable:
        raise WorldNotReady(name=name, log=log, found="silence")
    line = process.stdout.readline()
    if not line:
        said = log.read_text("utf-8", "replace").strip().splitlines() or ["nothing printed"]
        raise WorldNotReady(name=name, log=log, found=f"its end: {said[-1][:300]}")
    return int(json.loads(line)["port"])


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _log(folder: Path, name: str) -> Path:
    return folder / f"{name}.log"

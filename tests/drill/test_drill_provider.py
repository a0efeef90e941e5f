"""The test provider by itself: each character does what its name says, durably, in each world on its own."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from milepost.drill.moment import MovedClock
from milepost.drill.provider import LATE_S, MEMORY_S, Character, running


class Client:
    """A client of one world's provider; its world's time can be moved."""

    def __init__(self, address: str, worlds: Path, world: str = "w1") -> None:
        self._address, self._world = urlsplit(address), world
        (worlds / world).mkdir(exist_ok=True)
        self.clock = MovedClock(worlds / world / "clock")

    def ask(self, method: str, path: str, key: str = "", body: Any = None) -> tuple[int, Any, Any]:
        """Return status, answer and headers. Raises: ConnectionError when it hangs up."""
        connection = http.client.HTTPConnection(self._address.hostname or "", self._address.port, timeout=30)
        try:
            headers = {"Idempotency-Key": key}
            connection.request(method, f"/{self._world}/{path}", json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read()), answer.headers
        finally:
            connection.close()

    def send(self, character: str, key: str = "k") -> None:
        try:
            self.ask("POST", character, key, {"word": "alpha"})
        except ConnectionError:
            return

    def count(self) -> int:
        return len(self.ask("GET", "ledger")[1])


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    with running(tmp_path / "ledger.sqlite", tmp_path) as address:
        yield address, tmp_path


@pytest.fixture
def client(place: tuple[str, Path]) -> Client:
    return Client(*place)


@pytest.mark.parametrize(
    ("character", "applied"),
    [
        (Character.HONOURS_KEYS, 1),
        (Character.LOOKED_UP, 2),
        (Character.NEITHER, 2),
        (Character.NEVER_ANSWERS, 2),
        (Character.FORGETS_KEYS, 1),
        (Character.LOOKS_UP_LATE, 2),
    ],
)
def test_a_key_sent_twice_is_applied_as_the_character_says(client: Client, character: str, applied: int) -> None:
    client.send(character)
    client.send(character)
    assert client.count() == applied


def test_a_key_is_forgotten_after_a_while(client: Client) -> None:
    client.send(Character.FORGETS_KEYS)
    client.clock.move(timedelta(seconds=MEMORY_S))
    client.send(Character.FORGETS_KEYS)
    assert client.count() == 2


def test_what_is_looked_up_late_is_there_after_a_while(client: Client) -> None:
    client.send(Character.LOOKS_UP_LATE)
    assert client.ask("GET", "looks-up-late/k")[0] == 404
    client.clock.move(timedelta(seconds=LATE_S))
    assert client.ask("GET", "looks-up-late/k")[0] == 200


def test_what_never_answers_applies_and_hangs_up_once(client: Client) -> None:
    with pytest.raises(ConnectionError):
        client.ask("POST", "never-answers", "k", {"word": "alpha"})
    assert client.ask("GET", "never-answers/k")[0] == 200
    assert client.ask("POST", "never-answers", "k", {"word": "alpha"})[0] == 200


def test_trouble_comes_in_the_order_it_was_ordered(client: Client) -> None:
    client.ask("POST", "order", body={"next": ["busy", "lost", "silent"]})
    status, _, headers = client.ask("POST", "looked-up", "k", {})
    assert (status, headers["Retry-After"]) == (429, "30")
    for count in (1, 1):  # the lost one was applied, the silent one was not
        with pytest.raises(ConnectionError):
            client.ask("POST", "looked-up", "k", {})
        assert client.count() == count
    assert client.ask("POST", "looked-up", "k", {})[0] == 200


def test_worlds_do_not_see_each_other(client: Client, place: tuple[str, Path]) -> None:
    client.send(Character.NEITHER)
    assert Client(*place, world="w2").count() == 0


def test_what_is_sent_at_once_looks_the_same_in_whatever_order_it_arrives(place: tuple[str, Path]) -> None:
    """A drill compares worlds: with two calls at a time, nobody says which comes first."""
    told = []
    for world, keys in (("w1", "abab"), ("w2", "baab")):
        client = Client(*place, world=world)
        for key in keys:
            client.send(Character.NEITHER, key)
        for word in (keys[0], keys[1]):
            client.ask("POST", "neither", "", {"word": word})
        told.append((client.ask("GET", "ledger")[1], [client.ask("GET", f"neither/{key}")[1] for key in "ab"]))
    assert told[0] == told[1]
    assert len({entry["ref"] for entry in told[0][0]}) == 6


def test_the_ledger_outlives_its_process(tmp_path: Path) -> None:
    with running(tmp_path / "ledger.sqlite", tmp_path) as address:
        Client(address, tmp_path).send(Character.NEITHER)
    with running(tmp_path / "ledger.sqlite", tmp_path) as address:
        assert Client(address, tmp_path).count() == 1


DRILL = """
import sys
from pathlib import Path
from milepost.drill.provider import running
with running(Path("ledger.sqlite"), Path()) as address:
    print(address.rpartition(":")[2], flush=True)
    sys.stdin.read()
"""


def test_it_ends_with_a_drill_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DRILL]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path) as drill:
        assert drill.stdout is not None
        with socket.create_connection(("127.0.0.1", int(drill.stdout.readline())), timeout=30) as connection:
            drill.kill()
            assert connection.recv(1) == b""


def test_an_unknown_character_is_refused(client: Client) -> None:
    status, answer, _ = client.ask("POST", "kind", "k", {})
    assert status == 404
    assert "honours-keys" in answer["error"]

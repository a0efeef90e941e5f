"""The power goes at every call of the toy run: each state that the disk may then hold is opened, proven and resumed.

A point is `FLAVOUR PREFIX VARIANT [CHANGE]`; two recordings may differ by a call or two, so a violation also says which
change it means. The provider has applied what was sent until then and nothing else. It can be looked up and keeps no
keys, so what is sent twice is applied twice.
"""

from __future__ import annotations

import hashlib
import http.client
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from disk_states import Change, Traced, chosen, tree, variants
from judge import finished_like, holds
from shim import Call, order, recorded
from syscalls import Toys, toys
from tally import Harm, NotReached, Points, Violation, broken
from toy_orders import RUN_ID
from toy_provider import Character
from toy_world import World

from milepost.errors import MilepostError

KIND = "crash states"
FLAVOURS = ("sync", "async")
CHARACTER = Character.LOOKED_UP
OUTSIDE = ("bodies", "clock", "told", "output", "flaked", "input.txt")
"""Files of the test: they belong to the world outside, which loses nothing."""


@dataclass(frozen=True)
class Recording:
    """One undisturbed run, call by call."""

    calls: Sequence[Call]
    changes: Sequence[Change]

    def shown(self, prefix: int) -> int:
        """Return the newest record that the run knew to be durable after so many calls: its witness says so."""
        lines = [call.data for call in self.calls[:prefix] if "/witness/" in call.path and call.data.startswith(b"\n")]
        seen = [int(line.split()[1]) for line in lines]
        return max(seen, default=0)

    def sent(self, prefix: int) -> Iterator[tuple[str, dict[str, str], bytes]]:
        """Yield key, headers and body of each whole request that writes, in the order they were whole."""
        heads: dict[str, bytes] = {}  # socket -> the head it sent last
        for call in self.calls[:prefix]:
            if call.name == "send" and call.data.startswith(b"POST "):
                heads[call.path] = call.data
            elif call.name == "send" and call.path in heads:
                first, *lines = heads.pop(call.path).decode().strip().split("\r\n")
                headers = dict(line.split(": ", 1) for line in lines)
                yield first.split()[1].rpartition("/")[2], headers, call.data


@dataclass
class Cuts:
    """Recordings and the states that were tried already: many points lead to the same one."""

    lab: Toys
    recordings: dict[str, Recording]
    seen: set[str] = field(default_factory=set)


def record(lab: Toys, flavour: str) -> Recording:
    world = lab.world(flavour, CHARACTER)
    trace = world.folder / "trace"
    status = world.start(**order("wsncd", record=trace, skip=("/trace",)))
    assert status == 0, world.output()
    calls = recorded(trace)
    return Recording(calls, Traced(calls, str(world.folder)).changes)


@contextmanager
def opened(folder: Path) -> Iterator[Points]:
    with toys(folder) as lab:
        cuts = Cuts(lab, {flavour: record(lab, flavour) for flavour in FLAVOURS})
        points = [
            f"{flavour} {prefix} {variant}"
            for flavour, recording in cuts.recordings.items()
            for prefix in range(1, len(recording.calls) + 1)
            for variant in variants(recording.changes, prefix, OUTSIDE)
        ]
        yield points, lambda point: cut_at(cuts, point)


def cut_at(cuts: Cuts, point: str) -> None:
    """Rebuild one state, open it, prove it, resume it. Raises: Violation, NotReached (the same state was tried)."""
    flavour, number, variant = point.split(" ", 2)
    prefix, recording = int(number), cuts.recordings[flavour]
    files = tree(chosen(recording.changes, prefix, variant, OUTSIDE))
    sent = list(recording.sent(prefix))
    if not is_new(cuts.seen, flavour, files, len(sent)):
        raise NotReached
    world = cuts.lab.world(flavour, CHARACTER)
    lay_out(world.folder, files)
    for request in sent:
        apply(world, *request)
    try:
        proven(world, recording.shown(prefix))
        finished_like(world, cuts.lab.reference(flavour, CHARACTER))
    except Violation as violation:
        raise Violation(violation.harm, f"{described(recording, variant)}: {violation}") from violation


def described(recording: Recording, variant: str) -> str:
    """Say which change a variant leaves out, adds or damages."""
    what, _, number = variant.partition(" ")
    return " ".join([what, *(f"{c.kind} {c.path} {c.path2}" for c in recording.changes if str(c.index) == number)])


def is_new(seen: set[str], flavour: str, files: dict[str, bytes | None], sent: int) -> bool:
    digest = hashlib.sha256(f"{flavour} {sent}".encode())
    for path, data in files.items():
        digest.update(repr((path, data)).encode())
    found = digest.hexdigest()
    before = len(seen)
    seen.add(found)
    return len(seen) > before


def lay_out(folder: Path, files: dict[str, bytes | None]) -> None:
    for path, data in files.items():
        place = folder / path
        if data is None:
            place.mkdir(mode=0o700, exist_ok=True)
        else:
            place.write_bytes(data)
            place.chmod(0o600)


def apply(world: World, key: str, headers: dict[str, str], body: bytes) -> None:
    """Let the provider have heard of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", world.port, timeout=60)
    with closing(connection):
        connection.request("POST", f"/{world.character}/{world.folder.name}/{key}", body, {"At": headers["At"]})
        connection.getresponse().read()


def proven(world: World, shown: int) -> None:
    """See that what was shown is there and holds; then let the machine have booted anew. Raises: Violation."""
    path = world.folder / "store.sqlite"
    if not path.exists():
        if shown:
            broken(Harm.SKIPPED, f"{shown} records were shown, the store is gone")
        return
    try:
        found = len(world.records())
        if found < shown:
            broken(Harm.SKIPPED, f"{shown} records were shown, {found} are there")
        holds(world)
    except MilepostError as error:
        broken(Harm.FALSELY_VERIFIED, error)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update runs set boot_id = 'before' where run_id = ?", (RUN_ID,))

"""Trials that interrupt: a kill at a crash point, a send that goes wrong, two that race, one that is frozen.

Each gets a fresh world, interrupts the run in it, lets it end in new processes and compares with the reference.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from milepost.drill.compare import changes, repeated, skipped
from milepost.drill.order import KILLED, Told, read_told
from milepost.drill.outcome import Outcome, Verdict
from milepost.drill.points import Point
from milepost.drill.standing import is_writable
from milepost.drill.undisturbed import Reference
from milepost.drill.world import End, World

LEASE_S = 2.0
"""Seconds a lease lasts where a worker is frozen past it."""
COMMIT_S = 0.005
"""Seconds in which a commit that is under way may end."""
FREEZES_MAX = 100
"""Times a worker is stopped anew that was in the midst of a commit."""


def judged(world: World, kind: str, point: str, end: End, reference: Reference, record: str = "") -> Outcome:
    """Compare what stands in a world with the reference."""
    if end.problem:
        return Outcome(kind, point, Verdict.FAILED, record, end.problem, output=world.output())
    found = world.standing(end.told)
    differences = changes(reference.standing, found, reference.ignored)
    differences += [f"falsely verified: {what}" for what in found.unproven]
    again = repeated(reference.standing, found, world.sends(), reference.sends)
    missing = skipped(reference.standing, found)
    failed = bool(differences or again or missing)
    verdict = Verdict.FAILED if failed else Verdict.ASKED if end.asked else Verdict.SURVIVED
    return Outcome(
        kind,
        point,
        verdict,
        record,
        "; ".join(again + [f"{path} did not happen" for path in missing]) or ", ".join(end.asked),
        tuple(differences),
        tuple(again),
        tuple(missing),
        output=world.output() if failed else "",
    )


# ── killed ──────────────────────────────────────────────────────────────────────────────────────────


def kill(world: World, point: Point, reference: Reference) -> Outcome:
    """Kill the run at a point with SIGKILL, resume it in new processes, compare."""
    told = world.run({"MILEPOST_CRASH_AT": point.place})
    if told.status not in (KILLED, 0):
        return Outcome(
            "kill", str(point), Verdict.FAILED, said=f"before that point: {told.said}", output=world.output()
        )
    if told.status == 0:
        note = "this time the run did not pass that point"
        found = judged(world, "kill", str(point), End(told), reference, note)
        return found if found.failed else Outcome("kill", str(point), Verdict.UNTRIED, note)
    record = world.newest_record()
    return judged(world, "kill", str(point), world.finish(), reference, record)


# ── sends that go wrong ─────────────────────────────────────────────────────────────────────────────


def fault(world: World, kind: str, path: str, reference: Reference) -> Outcome:
    """Let the first send of an effect go wrong; the run goes on by its own policy, or is resumed."""
    end = world.finish(fault={"kind": kind, "path": path})
    return judged(world, kind, f"{kind}:{path}", end, reference)


# ── two at once ─────────────────────────────────────────────────────────────────────────────────────


def race(world: World, point: Point, reference: Reference) -> Outcome:
    """Kill a run, then let two processes resume it at once: one runs, the other is told who holds it.

    Whoever gets the run stops itself at its first point, so that the other one really finds it held.
    """
    world.run({"MILEPOST_CRASH_AT": point.place})
    record = world.newest_record()
    orders = {}
    for _ in range(2):
        order = world.order("run", freeze="first")
        orders[world.starter.start(order)] = order.told
    ended = dict(world.starter.wait_any() for _ in orders)
    holders = [pid for pid, stopped in ended.items() if stopped]
    for pid in holders:
        os.kill(pid, signal.SIGCONT)
    told = {pid: _waited(world, orders[pid], pid) for pid in orders}
    refused = [told[pid] for pid in orders if pid not in holders]
    if len(holders) != 1 or refused[0].code != "run-busy":
        said = f"expected one to run and one to be refused, found {' and '.join(each.said for each in told.values())}"
        return Outcome("race", "race", Verdict.FAILED, record, said, output=world.output())
    winner = told[holders[0]]
    end = End(winner) if winner.status == 0 else world.finish()
    return judged(world, "race", "race", end, reference, record)


def _waited(world: World, told: str, pid: int) -> Told:
    return read_told(Path(told), world.starter.wait(pid))


# ── frozen ──────────────────────────────────────────────────────────────────────────────────────────


def frozen(world: World, point: Point, reference: Reference) -> Outcome:
    """Stop a worker with SIGSTOP until another took its run and ended it, wake it: nothing of it may count."""
    order = world.order("run", freeze=point.place, lease_s=LEASE_S)
    sleeper = world.starter.start(order)
    if not _is_frozen(world, sleeper):
        return Outcome("frozen", "frozen", Verdict.UNTRIED, said="this time the run did not stop at that point")
    record = world.newest_record()
    world.move_time(LEASE_S * 10)
    try:
        end = world.finish(lease_s=LEASE_S)
    finally:
        os.kill(sleeper, signal.SIGCONT)
        woken = _waited(world, order.told, sleeper)
    if woken.code != "lease-taken":
        said = f"the woken worker was not refused: {woken.said}"
        return Outcome("frozen", "frozen", Verdict.FAILED, record, said, output=world.output())
    return judged(world, "frozen", "frozen", end, reference, record)


def _is_frozen(world: World, sleeper: int) -> bool:
    """Wait until a worker has stopped, outside of a commit of its other threads: in one it keeps the store locked."""
    for _ in range(FREEZES_MAX):
        if world.starter.wait(sleeper, stopped=True) != -signal.SIGSTOP:
            return False
        if is_writable(world.store):
            return True
        os.kill(sleeper, signal.SIGCONT)
        time.sleep(COMMIT_S)
        os.kill(sleeper, signal.SIGSTOP)
    os.kill(sleeper, signal.SIGCONT)
    world.starter.wait(sleeper)
    return False

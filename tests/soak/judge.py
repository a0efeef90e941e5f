"""Asks the four questions of a world in which something went wrong: finish it, and compare with the undisturbed run."""

from __future__ import annotations

import shutil

from tally import Harm, broken
from toy_orders import RUN_ID
from toy_world import Standing, World

from milepost.errors import MilepostError
from milepost.runtime.verify import verify_run


def finished_like(world: World, expected: Standing) -> None:
    """Resume until the run is done and compare. Raises: Violation."""
    try:
        world.finish()
    except AssertionError as gave_up:
        broken(Harm.STUCK, gave_up)
    holds(world)
    compared(read(world), expected)
    shutil.rmtree(world.folder)  # thousands of them do not fit


def read(world: World) -> Standing:
    try:
        return world.standing()
    except (MilepostError, FileNotFoundError) as refused:
        broken(Harm.FALSELY_VERIFIED, refused)


def holds(world: World) -> None:
    """See that everything the store shows as done can be proven. Raises: Violation."""
    with world.store() as store:
        if store.run(RUN_ID) is None:
            return
        verdicts = verify_run(store, RUN_ID, None, {"XDG_STATE_HOME": str(world.folder / "state")})
    bad = [f"{verdict.what}: {verdict.found}" for verdict in verdicts if not verdict.ok]
    if bad:
        broken(Harm.FALSELY_VERIFIED, "; ".join(bad))


def compared(found: Standing, expected: Standing) -> None:
    """Compare outcomes, never wording or times. Raises: Violation."""
    twice = {key: count for key, count in found.sent.items() if count != 1}
    if twice:
        broken(Harm.REPEATED, f"applied more than once: {twice}")
    for name in ("verified", "applied", "sent"):
        there, wanted = getattr(found, name), getattr(expected, name)
        if left_out := wanted.keys() - there.keys():
            broken(Harm.SKIPPED, f"not {name}: {sorted(left_out)}")
        if more := there.keys() - wanted.keys():
            broken(Harm.REPEATED, f"{name} beyond the reference: {sorted(more)}")
    if found != expected:
        broken(Harm.FALSELY_VERIFIED, f"{found} instead of {expected}")

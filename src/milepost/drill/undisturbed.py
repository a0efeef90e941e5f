"""The undisturbed runs: what everything is compared with, and what two of them already tell about the task.

Two, because what differs without any interruption cannot be blamed on one. Called by `campaign`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from milepost.drill.compare import Field, returned, unstable, unsteady_calls
from milepost.drill.damage import Checkpoint, checkpoints, sources
from milepost.drill.outcome import Report, SideEffect
from milepost.drill.points import Point, passed
from milepost.drill.standing import Standing
from milepost.drill.world import World
from milepost.errors import MisuseError
from milepost.protocol.keys import name_in
from milepost.records.shown import cut

HINT = (
    "A drill starts each run in an empty folder: let --setup MODULE:FUNCTION make there what the task needs, or name "
    "it by an absolute path."
)
SAID_MAX = 400
"""Characters of what a run said that its refusal repeats."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One undisturbed run, and how the others are compared with it."""

    standing: Standing
    points: Sequence[Point]
    sends: Mapping[str, int]  # effect -> how often the provider answered
    side_effects: Sequence[SideEffect] = ()
    checkpoints: Sequence[Checkpoint] = ()
    sources: Sequence[dict[str, Any]] = ()
    ignored: Sequence[Field] = ()


def undisturbed(world: World) -> Reference:
    """Run the task in a world to its end. Raises: MisuseError when it has none; Broken."""
    notes, watched = world.base / "points", world.base / "watched"
    told = world.run({"MILEPOST_CRASH_LOG": str(notes)}, watch=str(watched), own=(str(world.base),))
    if told.status != 0:
        raise MisuseError(
            reason=f"the undisturbed run in an empty folder did not end: {_in_a_line(told.said)}", hint=HINT
        )
    standing = world.standing(told)
    noted = watched.read_text(encoding="utf-8").splitlines()
    return Reference(
        standing,
        passed(notes.read_text(encoding="utf-8").splitlines()),
        returned(world.sends()),
        [SideEffect(**json.loads(line)) for line in noted],
        checkpoints(world.store),
        sources(world.store, str(world.folder)),
    )


def _in_a_line(said: str) -> str:
    return cut(" ".join(said.split()), SAID_MAX)


def refer(
    one: Reference, other: Reference, ignored: Sequence[Field], allowed: Sequence[str], report: Report
) -> Reference:
    """Enter in the report what two undisturbed runs tell; return what to compare with."""
    loose = unstable(one.standing, other.standing, ignored)
    report.not_compared = [f"{field.section}{field.path}" for field in loose]
    report.unsteady = unsteady_calls(one.standing, other.standing)
    report.side_effects = [effect for effect in one.side_effects if not _is_declared(effect, one.standing, allowed)]
    report.step_count, report.effect_count = len(one.standing.steps), len(one.standing.effects)
    report.point_count = len(one.points)
    return replace(one, ignored=[*ignored, *loose])


def _is_declared(effect: SideEffect, standing: Standing, allowed: Sequence[str]) -> bool:
    """A step that says what a model call took has declared its sockets; the user allows the rest by name."""
    names = {"plan"} if effect.who == "the plan" else {effect.who, name_in(effect.who)}
    if any(name in allowed or f"{name}:{effect.kind}" in allowed for name in names):
        return True
    return effect.kind == "socket" and effect.who in standing.spending

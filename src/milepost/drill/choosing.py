"""Which trials there are for a task, from what its undisturbed run passed, and which of them are wanted. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from milepost.drill import damage, trials
from milepost.drill.outcome import KINDS, Outcome
from milepost.drill.points import Point, last, sample
from milepost.drill.sends import FAULTS
from milepost.drill.starter import PATIENCE_S
from milepost.drill.undisturbed import Reference
from milepost.drill.world import World
from milepost.errors import MisuseError
from milepost.sources import name_of


@dataclass(frozen=True, slots=True)
class Wanted:
    """How much of it: `points` trials of each kind (None: every one), drawn with `seed`.

    `only` names trials to replay. `ignore` fields are not compared; `allow` are steps whose side effects are meant.
    """

    points: int | None = None
    only: tuple[str, ...] = ()
    seed: int = 0
    workers: int = 2
    ignore: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    patience_s: float = PATIENCE_S  # after which a process is stuck
    keep: Path | None = None  # worlds of failed trials are kept there


@dataclass(frozen=True, slots=True)
class Trial:
    """One thing to try: its kind and name, and what to do in a world."""

    kind: str
    point: str
    act: Callable[[World], Outcome]
    stopped: bool = False  # it only reads a run that stands before its end: one such world serves many


def chosen(reference: Reference, wanted: Wanted) -> list[Trial]:
    """Return everything to try, or what was asked for by name. Raises: MisuseError for an unknown name."""
    every = list(_every(reference))
    if wanted.only:
        return _named(every, wanted.only)
    found: list[Trial] = []
    for kind in KINDS:
        found += sample([trial for trial in every if trial.kind == kind], wanted.points, wanted.seed)
    return found


def _named(every: Sequence[Trial], names: Sequence[str]) -> list[Trial]:
    unknown = set(names) - {trial.point for trial in every}
    if unknown:
        raise MisuseError(reason=f"this task has no point {min(unknown)!r}; --json lists every point of a drill")
    return [trial for trial in every if trial.point in names]


def end_of(points: Sequence[Point]) -> Point:
    """Return where a run stands with everything verified and nothing told: before its end is recorded."""
    found = last(points, "run_ended", "before")
    assert found is not None
    return found


def _every(reference: Reference) -> Iterator[Trial]:
    for point in reference.points:
        yield Trial("kill", str(point), partial(trials.kill, point=point, reference=reference))
    for kind in FAULTS:
        for path in reference.standing.effects:
            act = partial(trials.fault, kind=kind, path=path, reference=reference)
            yield Trial(kind, f"{kind}:{path}", act)
    for kind in damage.DAMAGE:
        for number, found in enumerate(reference.checkpoints):
            act = partial(damage.damaged, kind=kind, path=found.path, number=number)
            yield Trial(kind, f"{kind}:{found.path}", act, stopped=True)
    yield from _changes(reference)
    yield from _contests(reference)


def _changes(reference: Reference) -> Iterator[Trial]:
    stop = end_of(reference.points)
    for descriptor in reference.sources:
        name = name_of(descriptor)
        act = partial(damage.changed_source, name=name, descriptor=descriptor, stop=stop)
        yield Trial("source", f"source:{name}", act)
    yield Trial("versions", "versions", partial(damage.changed_versions, stop=stop))


def _contests(reference: Reference) -> Iterator[Trial]:
    """Two at once and a frozen worker, in the middle of the run: before a start or an intent is recorded."""
    starts = [
        point
        for point in reference.points
        if point.phase == "before" and ("step_started" in point.label or "intent" in point.label)
    ]
    if starts:
        middle = starts[len(starts) // 2]
        yield Trial("race", "race", partial(trials.race, point=middle, reference=reference))
        yield Trial("frozen", "frozen", partial(trials.frozen, point=middle, reference=reference))

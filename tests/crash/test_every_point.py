"""Kill at every crash point, resume in a new process, compare with the undisturbed reference.

One plan as `def` and as `async def`, against a provider in six characters. One combination is killed at every point,
its asynchronous twin at each kind of point; the others where the provider's character can matter, which is while a send
is under way, and at a seeded sample of the rest: `make soak` (harness `crash_points`) has all of them. Compared are
artifacts, provider records and counts; never wording, never times.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from clock import START
from toy_lab import FLAVOURS, Lab, compare, kill_and_compare
from toy_orders import RUN_ID
from toy_provider import Character
from toy_world import KILLED, Starter, World, provider

from milepost.protocol.ops import Op
from milepost.records.model import KINDS, HeartbeatRecorded, QuestionAsked, RunStarted, SpentRecorded
from milepost.records.rows import CancelRow
from milepost.records.times import format_time

NO_POINT = {RunStarted.kind, HeartbeatRecorded.kind, SpentRecorded.kind}
"""Kinds that are written without an operation: their loss is tested with the point after and before them."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("worlds")
    starter = Starter()
    with provider(folder / "ledger.sqlite") as port:
        yield Lab(folder, starter, port)
    starter.close()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("character", list(Character))
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_killed_at_each_point_it_ends_like_the_undisturbed_run(lab: Lab, flavour: str, character: str) -> None:
    """Nothing twice, nothing left out; and a person is asked exactly when nobody else can know."""
    lab.campaign(flavour, character)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_again_at_each_point_of_a_resume_it_still_ends_like_the_undisturbed_run(lab: Lab) -> None:
    """A resume that is killed as well leaves nothing that the next one cannot go on from."""
    lab.campaigns()
    for point, schedule in sorted(lab.again.items()):
        if point not in lab.killed:
            kill_and_compare(lab, *schedule)
            lab.killed.add(point)


# ── points that no plan passes of itself ──


def claimed(lab: Lab) -> World:
    """A run that died with the key of a task-wide effect claimed and no intent, and was cancelled."""
    points = lab.reference("sync", Character.LOOKED_UP)[0].points()
    world = lab.world("sync", Character.LOOKED_UP)
    assert world.start(MILEPOST_CRASH_AT=points.index("claim durable") + 1) == KILLED
    with world.store() as store:
        store.cancel(CancelRow(RUN_ID, "ada", format_time(START), "wrong month"))
    return world


def begin(world: World, **environ: object) -> int:
    return world.start(**environ)


def is_cancelled(lab: Lab, world: World) -> None:
    assert world.start() == 3
    assert world.told()["code"] == "run-ended"
    kinds = [record.kind for record in world.records()]
    assert (kinds.count("cancel_entered"), kinds[-1]) == (1, "run_ended")


def claimed_and_cancelled(lab: Lab) -> World:
    world = claimed(lab)
    assert world.start() == 3, world.output()
    return world


def take_over(world: World, **environ: object) -> int:
    return world.start("second", **environ)


def is_taken_over(lab: Lab, world: World) -> None:
    assert take_over(world) == 0, world.output()
    assert {len(sends) for sends in world.ledger().values()} == {1}
    assert len(world.ledger()) == 3 + 4, "all of the second run; all but the task-wide effect of the first"


def killed_half_way(lab: Lab) -> World:
    world = lab.world("sync", Character.HONOURS_KEYS)
    assert world.start(TOY_DIE_IN="write") == KILLED
    return world


def change_version(world: World, **environ: object) -> int:
    return world.start(TOY_VERSION=2, **environ)


def not_started(lab: Lab) -> World:
    return lab.world("sync", Character.HONOURS_KEYS)


def stop(world: World, **environ: object) -> int:
    return world.start(TOY_SIGNAL_IN=f"inner alpha = {signal.SIGTERM:d}", **environ)


def is_done(lab: Lab, world: World) -> None:
    assert world.finish() == []
    compare(lab, world, str(world.folder))


def answered(times: int) -> Callable[[Lab], World]:
    """Return what makes a world in which people were asked and have answered so many times."""

    def prepare(lab: Lab) -> World:
        world = lab.world("asked", Character.LOOKED_UP)
        for _ in range(times):
            assert world.start() == 4, world.output()
            world.answer_from_ledger()
        return world

    return prepare


def is_asked_and_done_once(lab: Lab, world: World) -> None:
    world.answer_from_ledger()
    world.finish()
    assert {len(sends) for sends in world.ledger().values()} == {1}
    assert len(world.ledger()) == 2
    asked = Counter((r.path, r.about.get("when")) for r in world.records() if isinstance(r, QuestionAsked))
    assert set(asked.values()) == {1}, asked
    assert len(asked) == 4, "the step before and after its body, and each of two sends"


def shadowed(lab: Lab) -> World:
    return lab.world("shadowed", Character.LOOKED_UP)


def is_rehearsed(lab: Lab, world: World) -> None:
    assert world.finish() == []
    assert world.ledger() == {}
    assert [receipt["ref"] for receipt in world.told()["report"]["receipts"]] == ["shadow", "shadow"]


Scene = tuple[Callable[[Lab], World], Callable[..., int], int, Callable[[Lab, World], None]]
SCENES: dict[str, Scene] = {
    "cancel": (claimed, begin, 3, is_cancelled),
    "take over a claim": (claimed_and_cancelled, take_over, 0, is_taken_over),
    "change a version": (killed_half_way, change_version, 0, is_done),
    "stop in order": (not_started, stop, 128 + signal.SIGTERM, is_done),
    "ask before a step": (answered(0), begin, 4, is_asked_and_done_once),
    "ask for a review": (answered(1), begin, 4, is_asked_and_done_once),
    "ask before all sends": (answered(2), begin, 4, is_asked_and_done_once),
    "send what was allowed": (answered(3), begin, 0, is_asked_and_done_once),
    "send nothing": (shadowed, begin, 0, is_rehearsed),
}


def play(lab: Lab, scene: str) -> None:
    """Play a scene undisturbed, then kill at each kind of point that was not killed at yet."""
    prepare, act, status, check = SCENES[scene]
    world = prepare(lab)
    assert act(world) == status, (scene, world.output())
    points = world.points(world.started)
    check(lab, world)
    lab.note(points, scene)
    for number, point in enumerate(points, 1):
        if point not in lab.killed:
            world = prepare(lab)
            assert act(world, MILEPOST_CRASH_AT=number) == KILLED, (scene, point)
            lab.killed.add(point)
            check(lab, world)


@pytest.mark.parametrize("scene", list(SCENES))
def test_killed_while_a_person_a_signal_or_another_run_is_heard(lab: Lab, scene: str) -> None:
    """Cancelling, taking over a claim, noting a version and stopping in order survive a kill like everything else."""
    play(lab, scene)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_crash_point_was_passed_that_no_test_killed_at(lab: Lab) -> None:
    """A crash point that no test reaches fails the build; so does an operation or a record without one."""
    test_killed_again_at_each_point_of_a_resume_it_still_ends_like_the_undisturbed_run(lab)
    for scene in SCENES:
        play(lab, scene)
    assert {point: where for point, where in lab.seen.items() if point not in lab.killed} == {}
    labels = {point.partition(" ")[0] for point in lab.killed}
    # reading secrets writes nothing, nor does waiting for other branches of a plan that changed: the intent behind
    # them has its own points; the toy plans have neither
    operations = {kind.__name__.lower() for kind in Op.__subclasses__()} - {"append", "readsecrets", "outstanding"}
    assert operations - labels == set()
    records = {kind for label in labels for kind in label.removeprefix("append:").split("+")}
    assert set(KINDS) - NO_POINT - records == set()

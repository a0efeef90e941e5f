"""The four questions about a world of the state machine. Called by `machine` after every rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from machine_world import GIVEN, Lived, Node, paths
from schedule_worlds import ATTEMPTS
from tally import Harm, broken

from milepost.protocol.decide import Decision, World, decide
from milepost.protocol.policy import STARTS_MAX
from milepost.protocol.snapshot import Snapshot
from milepost.records.model import AnswerEntered, IntentRecorded, StartReturned, StepStarted
from milepost.records.times import format_time
from milepost.runtime.verify import verify_run


def judge(world: Lived) -> None:
    """See that what must always hold does. Raises: Violation."""
    nothing_twice(world)
    if world.store.run(world.run_id) is not None:
        everything_proven(world)
        attempts_bounded(world)
        decided(world)


def nothing_twice(world: Lived) -> None:
    repeated = {key: count for key, count in world.provider.applied.items() if count > 1}
    if repeated:
        broken(Harm.REPEATED, f"one key applied twice: {repeated}")
    if world.went_back:
        return  # what was renamed since can only be known by another name: the store that knew it is lost
    keys = Counter(world.provider.names.values())
    more = {name: count for name, count in keys.items() if count > 1 + _allowed(world, name)}
    if more:
        broken(Harm.REPEATED, f"one effect applied under several keys: {more}")


def _allowed(world: Lived, name: str) -> int:
    return sum(count for path, count in world.allowed.items() if path.rpartition("/")[2] == f"post[{name}]")


def everything_proven(world: Lived) -> None:
    """What is shown as verified has its artifact, its seal and its place, as `milepost verify` proves it."""
    verdicts = verify_run(world.store, world.run_id, world.seal_key, world.options()["environ"])
    bad = [f"{verdict.what}: {verdict.found}" for verdict in verdicts if not verdict.ok and verdict.what != "witness"]
    if bad:
        broken(Harm.FALSELY_VERIFIED, "; ".join(bad))


def attempts_bounded(world: Lived) -> None:
    """Starts never pass the policy; an answer of a person allows as many once more."""
    starts: Counter[str] = Counter()
    for record in world.records():
        if isinstance(record, AnswerEntered):
            starts.clear()
        elif isinstance(record, StartReturned):
            starts[record.path] -= 1
        elif isinstance(record, (StepStarted, IntentRecorded)) and "outer[" not in record.path.rpartition("/")[2]:
            starts[record.path] += 1
            if starts[record.path] > max(ATTEMPTS, STARTS_MAX):
                broken(Harm.REPEATED, f"{record.path} started {starts[record.path]} times")


def decided(world: Lived) -> None:
    """Every journal, whatever it went through, has exactly one next decision, always the same."""
    s, at = world.snapshot(), format_time(world.clock.now())
    decisions = [decide(s, World(at=at, run_id=world.run_id)) for _ in range(2)]
    if decisions[0] != decisions[1] or not isinstance(decisions[0], Decision):
        broken(Harm.STUCK, f"no one decision: {decisions}")


def whole(world: Lived, nodes: Sequence[Node]) -> None:
    """See that a run that is done did the whole plan, each call with what the one before returned."""
    s = world.snapshot()
    left_out = [path for path in paths(nodes) if not _finished(s, path) and not _is_left_in_its_fork(s, path)]
    if left_out:
        broken(Harm.SKIPPED, f"done without {left_out}")
    excused = set(_excused(s))
    result = _follow(world, s, nodes, "", GIVEN, excused)
    assert s.ended is not None
    assert s.ended.output is not None
    found = world.output(s.ended.output.digest)
    if found != result:
        broken(Harm.FALSELY_VERIFIED, f"the run's result is {found}, its checkpoints lead to {result}")


def _is_left_in_its_fork(s: Snapshot, path: str) -> bool:
    """Say whether a fork kept the outer checkpoint only: what was inside stands in the run it came from."""
    outer = s.steps.get(path.rpartition("/")[0])
    is_forked = s.started is not None and s.started.forked_from is not None
    return is_forked and outer is not None and outer.verified is not None


def _finished(s: Snapshot, path: str) -> bool:
    step, effect = s.steps.get(path), s.effects.get(path)
    return (step is not None and step.verified is not None) or (effect is not None and effect.applied is not None)


def _excused(s: Snapshot) -> Iterator[str]:
    """Yield what a person wanted to keep although it was made from something else."""
    for question, answer in s.answered.values():
        if answer.choice in ("keep", "accept"):
            yield question.path
            yield from question.about.get("steps", ())
            yield from question.about.get("paths", ())


def _follow(world: Lived, s: Snapshot, nodes: Sequence[Node], prefix: str, given: int, excused: set[str]) -> int:
    """Return what the checkpoints of a body lead to. Raises: Violation when one was made from something else."""
    for node in nodes:
        path = prefix + node.path
        given = given + len(node.name) if node.kind == "post" else _value(world, s, node, path, given, excused)
    return given


def _value(world: Lived, s: Snapshot, node: Node, path: str, given: int, excused: set[str]) -> int:
    verified = s.steps[path].verified
    assert verified is not None
    made = world.output(verified.output.digest)
    is_excused = path in excused or any(path.startswith(f"{kept}/") for kept in excused)  # with all that is inside
    if made["given"] != given and not is_excused:
        broken(Harm.FALSELY_VERIFIED, f"{path} is verified for {made['given']}, the plan gives it {given}")
    if node.kind == "reads" and not is_excused:
        content = int(world.source(node.name).read_text(encoding="utf-8"))
        if made["value"] != made["given"] + content:
            broken(Harm.FALSELY_VERIFIED, f"{path} is verified for another content than {content}")
    if node.kind == "outer" and not any(_is_left_in_its_fork(s, path) for path in paths(node.inner, f"{path}/")):
        inner = _follow(world, s, node.inner, f"{path}/", made["given"], excused)
        if inner != made["value"] and not is_excused and not any(e.startswith(path) for e in excused):
            broken(Harm.FALSELY_VERIFIED, f"{path} says {made['value']}, what is inside leads to {inner}")
    return int(made["value"])

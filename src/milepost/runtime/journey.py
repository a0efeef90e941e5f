"""One journey: lease → snapshot → decide() → act → again, then the plan, then its end.

Written once, as a protocol of its own: the same two drivers carry it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from milepost.errors import (
    CorruptRecord,
    LeaseLost,
    MilepostError,
    NotDecodable,
    RunPaused,
    RunStopping,
    Signal,
    StepFailed,
)
from milepost.protocol import decide as rules
from milepost.protocol.decide import World, decide
from milepost.protocol.doubt import ask_unsettled, look_up
from milepost.protocol.failure import cause_record, error_record, leaves_as_it_is
from milepost.protocol.keep import beside, keep_bytes, keep_files
from milepost.protocol.landing import answered, answered_outcome, recovered
from milepost.protocol.ops import Append, Artifact, Ask, Body, Ended, Load, Moment, Now, Steps, Within
from milepost.protocol.outcomes import CannotTell, Found, NotFound
from milepost.protocol.questions import uncalled_question
from milepost.protocol.spec import EffectSpec
from milepost.protocol.state import EffectState, Send
from milepost.records.canonical import canonical, parse
from milepost.records.model import (
    AnswerEntered,
    CancelEntered,
    Pointer,
    RunEnded,
    RunResumed,
    RunStatus,
    VersionsNoted,
)
from milepost.records.rows import AnswerRow
from milepost.runtime.active import ActiveRun
from milepost.runtime.children import agent_of
from milepost.runtime.files import put_back
from milepost.runtime.limiting import declared_limits
from milepost.runtime.registry import spec_of
from milepost.runtime.scope import RuntimeCall
from milepost.runtime.world import check_sources, check_versions, kept_files


class HasEnded(Exception):
    """The run ended before this journey: its status. Inside the runtime only."""

    def __init__(self, status: RunStatus) -> None:
        self.status = status


class StillAsks(Exception):
    """Questions are open and unanswered: nothing ran. Inside the runtime only."""


def journey(run: ActiveRun, call: RuntimeCall, world: World) -> Steps[Any]:
    """Bring a run from where it stands to its end and return the task's result.

    Raises: HasEnded, StillAsks, Signals and whatever the plan raised; the door translates them.
    """
    try:
        yield from prepare(run, world)
        ended: Ended = yield Body()
        if ended.error is None:
            return (yield from _finish(run, call, ended))
    except (HasEnded, StillAsks, GeneratorExit):  # the last: nobody drives this any more
        raise
    except BaseException as error:
        yield from _stop(run, error, world)
        raise
    yield from _stop(run, ended.error, world)
    raise plans_own(run, ended.error)


def plans_own(run: ActiveRun, error: BaseException) -> BaseException:
    """Return what the plan raised between its steps as the failure it is; what is ours or a group as it is."""
    if isinstance(error, (MilepostError, Signal, BaseExceptionGroup)) or leaves_as_it_is(error):
        return error
    text = str(error_record(error))
    failed = StepFailed(run_id=run.run_id, path="the plan", attempt=run.snapshot.resumes + 1, error=text)
    failed.__cause__ = error
    return failed


# ── before the plan: the six rules ──────────────────────────────────────────────────────────────────


def take_up_answers(run: ActiveRun, world: World) -> Steps[None]:
    """Enter what people decided since. With a question still open nothing goes on, and no resume is recorded.

    Raises: StillAsks. Crash: as `_enter_answers`; the run asks as before.
    """
    while isinstance(decision := decide(run.snapshot, world), rules.EnterAnswers | rules.StillAsking):
        yield from _act(run, world, decision)


def prepare(run: ActiveRun, world: World) -> Steps[None]:
    """Decide and act until nothing stands in the way of the plan. Raises: RefusedError, HasEnded, StillAsks."""
    while not isinstance(decision := decide(run.snapshot, world), rules.Continue):
        yield from _act(run, world, decision)


def _act(run: ActiveRun, world: World, decision: rules.Decision) -> Steps[None]:
    match decision:
        case rules.Refuse(error=error):
            raise error
        case rules.Finished(status=status):
            raise HasEnded(status)
        case rules.StillAsking():
            run.asking = True
            raise StillAsks
        case rules.LookAtSources():
            world.sources = yield from check_sources(run.snapshot)
        case rules.LookAtVersions():
            world.versions = check_versions(run.snapshot, run.task.versions(), promotion=world.promotion)
        case rules.LookUpIntents(intents=intents):
            world.lookups = yield from _look_up_all(run, intents)
        case rules.PutBack(sources=gone):
            yield from _put_back(run, gone)
            world.sources, world.has_put_back = None, True
        case rules.SettleIntent(effect=state, found=found):
            yield from _settle(run, state, found)
        case rules.EnterAnswers(answers=answers):
            yield from _enter_answers(answers)
        case rules.EnterCancel(by=by, note=note):
            _check_cancel(run, world)
            now = yield Now()
            yield Append((CancelEntered(at=now.text, by=by, note=note),), wait=True)
        case rules.NoteVersions(versions=versions):
            yield from _note_versions(versions)
            world.versions = ()
        case rules.AskWhatBecame(intents=intents):
            yield from ask_unsettled("The run is cancelled", run.snapshot, intents, run.run_id)
        case Ask():
            yield decision
        case rules.End(status=status):
            yield from _end(status)


def resumed(run: ActiveRun) -> Steps[None]:
    """Note that this process goes on with the run. Crash: a resume that left no trace and is not counted."""
    now = yield Now()
    yield Append((resumption(run, now),))


def resumption(run: ActiveRun, now: Moment) -> RunResumed:
    """Return the record of a resume."""
    holder = run.lease.holder
    return RunResumed(
        at=now.text,
        number=run.snapshot.resumes + 1,
        token=run.lease.token,
        agent=agent_of(run.options.environ, run.task.name),
        holder={"host": holder.host, "pid": holder.pid, "since": holder.since},
        limits=declared_limits(run.task),
        uptime=now.uptime,
    )


def _enter_answers(answers: Any) -> Steps[None]:
    """Enter what people decided. Crash: some questions are answered, each whole; the next resume enters the rest."""
    now = yield Now()
    given: dict[str, list[AnswerRow]] = {}
    for question, answer in answers:
        given.setdefault(question.question_id, []).append(answer)
    for last, (name, rows) in enumerate(given.items(), 1 - len(given)):
        artifacts: list[Artifact] = []
        yield Append([entered(name, row, now.text, artifacts) for row in rows], artifacts, wait=last == 0)


def entered(question_id: str, answer: AnswerRow, at: str, artifacts: list[Artifact]) -> AnswerEntered:
    """Return the record of an answer; what it carries is added to the artifacts."""
    return AnswerEntered(
        at=at,
        question_id=question_id,
        choice=answer.choice,
        by=answer.by,
        answered_at=answer.at,
        note=answer.note,
        ref=answer.ref,
        result=_carried(answer.result, artifacts),
        request=_carried(answer.request, artifacts),
        door=answer.door,
        role=answer.role,
    )


def _carried(data: bytes | None, artifacts: list[Artifact]) -> Pointer | None:
    if data is None:
        return None
    artifacts.append(beside(data))
    return artifacts[-1].pointer


def _check_cancel(run: ActiveRun, world: World) -> None:
    """Refuse a request that came since the run was opened and was not written with its key."""
    assert world.cancel is not None
    try:
        run.journal.sealer.check_row(world.cancel)
    except CorruptRecord as error:
        raise run.broken_by(error) from error


def _note_versions(versions: Any) -> Steps[None]:
    """Write old → new and go on. Crash: not noted, and the next resume notes them; or all noted."""
    now = yield Now()
    yield Append([VersionsNoted(at=now.text, what=v.path, old=dict(v.old), new=dict(v.new)) for v in versions])


def _put_back(run: ActiveRun, gone: Any) -> Steps[None]:
    """Put files of outputs back that are gone. Crash: some are back, each whole; the next resume sees to the rest."""
    kept = yield from kept_files(run.snapshot)
    for check in gone:
        put_back(run.journal.artifacts, kept[check.key])


# ── open intents ────────────────────────────────────────────────────────────────────────────────────


def _look_up_all(run: ActiveRun, intents: Any) -> Steps[Mapping[str, object]]:
    """Look up every open intent before anything else runs; nothing is sent here."""
    answers: dict[str, object] = {}
    for state, send in intents:
        if state.path in answers:
            continue
        call = yield from _recorded_call(run, state, send)
        if call is None or call.spec.lookup is None:
            answers[state.path] = CannotTell("it cannot be looked up before the plan reaches it")
            continue
        answers[state.path] = answer = yield Within(call, look_up(call, send.intent.key, state))
        run.looked_up[state.path] = answer
        state.not_found = isinstance(answer, NotFound)
    return answers


def _recorded_call(run: ActiveRun, state: EffectState, send: Send) -> Steps[RuntimeCall | None]:
    """Rebuild the call of an open intent from its record; None when its effect is no longer declared like that."""
    spec = spec_of(state.path, send.intent.versions)
    if not isinstance(spec, EffectSpec):
        return None
    request: Any = parse((yield Load(send.intent.request, f"request of {state.path}")))
    encoded = canonical(request["arguments"])
    try:
        bound = spec.arguments.decode(encoded)
        args, kwargs = spec.arguments.spread(bound)
    except (NotDecodable, TypeError):
        return None
    return RuntimeCall(
        spec=spec,
        path=state.path,
        branch=state.branch,
        bound=bound,
        encoded=encoded,
        fingerprint="",
        item_key=send.intent.item_key,
        run=run,
        snapshot=run.snapshot,
        args=args,
        kwargs=kwargs,
    )


def _settle(run: ActiveRun, state: EffectState, found: Found[Any] | None) -> Steps[None]:
    """Close an open intent with what the provider or a person said. Crash: it stays open and is settled again."""
    last, answer = state.last, state.answer
    assert last is not None
    key, call = last.intent.key, (yield from _recorded_call(run, state, last))
    if found is not None:
        assert call is not None
        yield Within(call, recovered(call, key, state, found))
    elif answer is not None and call is not None:
        yield Within(call, answered(call, key, last.intent.request_digest, answer))
    elif answer is not None:  # its effect is not declared any more: the answer counts all the same
        now = yield Now()
        yield Append((answered_outcome(state.path, state, key, answer, now.text),), wait=True)


# ── the end ─────────────────────────────────────────────────────────────────────────────────────────


def _finish(run: ActiveRun, call: RuntimeCall, ended: Ended) -> Steps[Any]:
    """Record the result. No run is finished while a question or an open intent stands.

    Crash: the plan is replayed by the next resume, from recorded results only, and ends here again.
    """
    if ended.uncalled:
        now = yield Now()
        yield uncalled_question("", ended.uncalled, run.snapshot, run_id=run.run_id, at=now.text)
    yield from ask_unsettled("The plan has ended", run.snapshot, run.snapshot.open_intents(), run.run_id)
    data, value = call.spec.output.round_trip(ended.value)
    kept: Artifact = yield from keep_bytes(data, call.spec.output.media_type)
    artifacts = [kept]
    files = yield from keep_files(value, artifacts)
    now = yield Now()
    record = RunEnded(at=now.text, status=RunStatus.DONE, output=kept.pointer, files=files)
    yield Append((record,), artifacts, wait=True)
    _read_back(run)
    return value


def _read_back(run: ActiveRun) -> None:
    """See that what the run rests on is what was appended, before anybody is told that it is done.

    A trigger in the database, or somebody at it meanwhile, is no failure of a step: it ends the journey.
    """
    try:
        run.journal.check_written()
    except CorruptRecord as error:
        raise run.broken_by(error) from error


def _stop(run: ActiveRun, error: BaseException, world: World) -> Steps[None]:
    """Record why the journey stops here, so that the next reader knows. Crash: a run that just died."""
    if isinstance(error, LeaseLost) or run.broken is not None or not run.is_of_this_process:
        return
    if isinstance(error, RunStopping) and run.cancelling:
        yield from _end_cancelled(run, world)
        return
    status, noted = RunStatus.FAILED, None
    if isinstance(error, RunPaused):
        status = RunStatus.ASKING if run.snapshot.questions else RunStatus.WAITING
    elif isinstance(error, RunStopping):
        status = RunStatus.INTERRUPTED
    elif not isinstance(error, Signal):
        noted = cause_record(error) if isinstance(error, StepFailed) else error_record(error)
    now = yield Now()
    path = str(error.facts.get("path", "")) if isinstance(error, MilepostError) else None
    until, reason = run.waiting if status is RunStatus.WAITING and run.waiting else (None, None)
    record = RunEnded(at=now.text, status=status, error=noted, path=path or None, until=until, reason=reason)
    try:
        yield Append((record,), wait=True)
    except Signal:
        if not isinstance(error, KeyboardInterrupt):  # it may have come in a commit, after which nothing is written
            raise


def _end_cancelled(run: ActiveRun, world: World) -> Steps[None]:
    """Enter the request that stopped this journey, look open intents up and end the run, or ask about them."""
    run.cancelling = False
    row = run.journal.store.run(run.run_id)
    world.cancel = row.cancel if row is not None else None
    world.sources, world.lookups = (), None
    yield from prepare(run, world)


def _end(status: RunStatus) -> Steps[None]:
    """End the run as a person decided. Crash: the next resume ends it."""
    now = yield Now()
    yield Append((RunEnded(at=now.text, status=status),), wait=True)

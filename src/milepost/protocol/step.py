"""The protocol of a step: body → encode → artifact → verify → checkpoint. Written once; a driver carries it out.

Durable before what (design §5.1): the start is waited for before the body runs; the checkpoint is appended
when the step ends and made durable by whatever starts next. Pure: no I/O, no clock, no thread.
"""

from __future__ import annotations

from typing import Any

from milepost.errors import (
    ArgumentsChanged,
    Declined,
    MilepostError,
    RecordTooLarge,
    Signal,
    StepFailed,
    UndeclaredWrite,
)
from milepost.protocol.approval import declined_inside
from milepost.protocol.asking import ask_about_plan, ask_attempts_used, asking, changes_since
from milepost.protocol.call import Call
from milepost.protocol.doubt import ask_unsettled
from milepost.protocol.failure import Again, VerificationFailed, after_failure, error_record, leaves_as_it_is
from milepost.protocol.keep import keep_bytes, small_or_none
from milepost.protocol.keys import name_in
from milepost.protocol.manifest import entries_in, keep_manifests, manifests_now
from milepost.protocol.ops import Append, Artifact, Body, Ended, Load, Moment, Now, Observe, Steps, Verify, Wait
from milepost.protocol.questions import uncalled_question
from milepost.protocol.reviewing import live_rule, may_stand, may_start
from milepost.protocol.spec import WITHIN, WITHIN_MAX, StepSpec, label_of, own_versions
from milepost.protocol.state import StepState
from milepost.protocol.within import stay_within
from milepost.records.frozen import slotted
from milepost.records.model import (
    RECORD_SIZE_MAX,
    OutputRecorded,
    Pointer,
    QuestionKind,
    StartReturned,
    StepFailedNoted,
    StepStarted,
    StepVerified,
    WaitRecorded,
)

Observations = list[Any]
_FIELDS_SIZE = 1500
"""Bytes of a checkpoint besides names, notes and versions: digests, times, numbers."""


@slotted
class Kept:
    """What a body left: the decoded value and the pointers a checkpoint needs."""

    attempt: int
    value: Any
    output: Pointer
    files: Pointer | None
    sources: Pointer | None
    artifacts: list[Artifact]
    spent: dict[str, Any] | None
    duration_s: float


def step(call: Call[StepSpec]) -> Steps[Any]:
    """Bring one step to its checkpoint and return its output, the stored one if it is verified already.

    Raises: StepFailed, Declined (recorded), a Signal (nothing recorded but the start given back), RunPaused by asking.
    """
    state = call.step
    if (state is not None or call.unclaimed or call.effect is not None) and not _stands(call, state):
        yield from settle_changes(call)
    if state is not None and state.verified is not None:
        return call.spec.output.decode((yield Load(state.verified.output, f"output of {call.path}")))
    if state is not None and state.failure is not None and state.failure.final:
        declined = declined_inside(call) if state.failure.error.type.endswith(".Declined") else None
        raise declined or _step_failed(call, state.attempt, str(state.failure.error))
    while True:
        kept = yield from _kept_before(call)
        if kept is None:
            kept = yield from _attempt(call)
        if kept is not None and (yield from _checkpoint(call, kept)):
            return kept.value


# ── what was recorded before ────────────────────────────────────────────────────────────────────────


def _stands(call: Call[StepSpec], state: StepState | None) -> bool:
    """Say whether what was finished is what the plan calls for: nothing changed, and nobody said redo."""
    if state is None or not state.finished:
        return False
    return call.fingerprint == state.inputs_fingerprint and not call.snapshot.redo_at


def settle_changes(call: Call[StepSpec]) -> Steps[None]:
    """Compare the call with its record: a new call in an old plan and other inputs are questions."""
    state = call.step
    if state is None:
        if call.plan_changed:
            yield from ask_about_plan(call, call.unclaimed)
        if call.effect is not None and not call.is_accepted:
            yield from ask_about_plan(call, [call.path])  # it was an effect of this name
        return
    if not state.finished:
        return
    if call.fingerprint not in (state.inputs_fingerprint, state.accepted_inputs):
        if not call.snapshot.redoes(call.path):
            yield from _ask_about_inputs(call, state)
        call.snapshot.reopen(call.path)
    elif call.snapshot.redoes(call.path) and (
        _made_otherwise(call, state) or (yield from _sources_differ(call, state))
    ):
        call.snapshot.reopen(call.path)


def _made_otherwise(call: Call[StepSpec], state: StepState) -> bool:
    """Say whether a person wanted what other versions made to be redone, and this step was made by others."""
    if not call.snapshot.redoing_versions or state.verified is None:
        return False
    return own_versions(state.verified.versions) != own_versions(call.spec.versions)


def _ask_about_inputs(call: Call[StepSpec], state: StepState) -> Steps[None]:
    changes: list[str] = []
    if state.inputs is not None:
        changes = yield from changes_since(state.inputs, f"inputs of {call.path}", call.encoded)
    first = f": {changes[0]}" if changes else ""
    yield from asking(
        call,
        QuestionKind.SOURCE_CHANGED,
        sentence=f"{call.path} was finished with other inputs than the plan gives it now{first}.",
        evidence={"step": call.path, "changes": changes},
        about={"inputs": {call.path: call.fingerprint}, "steps": [call.path]},
    )


def _sources_differ(call: Call[StepSpec], state: StepState) -> Steps[bool]:
    """Say whether what a verified step read is no longer what is there (asked only while redoing)."""
    if state.verified is None:
        return False
    entries = yield from entries_in(state.verified.sources, f"sources of {call.path}")
    read = [entry for entry in entries if entry["role"] == "read"]
    now = yield Observe([entry["descriptor"] for entry in read])
    return any(old["fingerprint"] != new.fingerprint for old, new in zip(read, now, strict=True))


def _kept_before(call: Call[StepSpec]) -> Steps[Kept | None]:
    """Return an output whose verification was interrupted, so that dying in a verifier does not repeat the body."""
    state = call.step
    if state is None or state.kept is None or state.inputs_fingerprint != call.fingerprint:
        return None
    kept = state.kept
    value = call.spec.output.decode((yield Load(kept.output, f"output of {call.path}")))
    artifacts: list[Artifact] = []
    files, sources = yield from manifests_now(call, state, kept, value, artifacts)
    spent, took = dict(kept.spent or {}) or None, kept.duration_s or 0.0
    return Kept(kept.attempt, value, kept.output, files, sources, artifacts, spent, took)


# ── one attempt ─────────────────────────────────────────────────────────────────────────────────────


def _attempt(call: Call[StepSpec]) -> Steps[Kept | None]:
    """Start the body once. None: it failed and its policy says again.

    Crash: a start without an end, counted; the next resume starts the step again.
    """
    if call.run.promoted is not None:
        yield from call.run.promoted.ask_if_unlike(call)
    attempt = yield from _start(call)
    read = [*call.paths, *call.spec.sources]
    before: Observations = (yield Observe(read)) if read else []
    ended: Ended = yield Body()
    if isinstance(ended.error, Signal):
        yield from _give_back(call, attempt)
        raise ended.error
    if ended.error is not None:
        yield from failed(call, attempt, ended.error, ended.duration_s)
        return None
    if ended.uncalled or call.path in call.snapshot.children:
        yield from _ask_about_the_end(call, attempt, ended)
    try:
        return (yield from _keep(call, attempt, ended, before))
    except MilepostError as error:
        yield from failed(call, attempt, error, ended.duration_s)
        return None


def _ask_about_the_end(call: Call[StepSpec], attempt: int, ended: Ended) -> Steps[None]:
    """Ask when the body left undone what was done before, or left something in doubt; its start is given back.

    Crash: the start counts, or it was given back; either way the next resume runs the body and asks.
    """
    s = call.snapshot
    left = list(s.open_within(call.path))
    if not ended.uncalled and not left:
        return
    now = yield from _give_back(call, attempt)
    yield from ask_unsettled(f"{call.path} has ended", s, left, call.run_id)
    yield uncalled_question(call.path, ended.uncalled, s, run_id=call.run_id, at=now.text)


def _give_back(call: Call[StepSpec], attempt: int) -> Steps[Moment]:
    """Give a start back; return when. Crash: it counts, or it was given back."""
    now: Moment = yield Now()
    yield Append((StartReturned(at=now.text, path=call.path, attempt=attempt),))
    return now


def _start(call: Call[StepSpec]) -> Steps[int]:
    """Wait out a recorded wait, ask when the starts are used, record the next one; return its number.

    Crash: no start, or one without an end, which counts.
    """
    now = yield Now()
    state = call.step
    if state is not None and state.until is not None:
        yield Wait(state.until, f"{call.path} is tried again")
        now = yield Now()
    if state is not None and state.starts >= call.starts_max:
        yield from ask_attempts_used(call, state.starts, str(state.failure.error) if state.failure else "")
    if call.task.limits is not None:
        now = yield from stay_within(call, now)
    attempt = state.attempt + 1 if state is not None else 1
    if call.spec.approving is not None or call.snapshot.approvals:
        yield from may_start(call)
    _check_size(call)
    inputs = small_or_none(call.encoded)
    record = StepStarted(
        at=now.text,
        path=call.path,
        attempt=attempt,
        inputs_fingerprint=call.fingerprint,
        inputs=inputs.pointer if inputs else None,
        branch=call.branch,
    )
    yield Append((record,), (inputs,) if inputs else (), wait=True, starts=True)
    return attempt


def _check_size(call: Call[StepSpec]) -> None:
    size = _FIELDS_SIZE + call.spec.texts_size + len(call.path.encode())
    if size > RECORD_SIZE_MAX:
        raise RecordTooLarge(what="the checkpoint", path=call.path[:200], size=size, size_max=RECORD_SIZE_MAX)


def failed(call: Call[StepSpec], attempt: int, error: BaseException, duration_s: float) -> Steps[None]:
    """Record a failed attempt; return when the policy says again, else ask or raise.

    Crash: before the record, a start without an end; after it, the same decision is taken on resume.
    """
    now = yield Now()
    state = call.step
    assert state is not None
    decision = after_failure(call.spec.retry, error, starts=state.starts, since=state.first_started_at, now=now.at)
    final = decision == "raise"
    noted = StepFailedNoted(
        at=now.text, path=call.path, attempt=attempt, error=error_record(error), final=final, duration_s=duration_s
    )
    if isinstance(decision, Again):
        yield Append((noted, WaitRecorded(at=now.text, path=call.path, until=decision.until, reason="retry")))
        yield Wait(decision.until, f"{call.path} is tried again after {noted.error.type}")
        state.until = None  # it was waited for: a clock that was set back meanwhile must not make it be again
        return
    yield Append((noted,), wait=final)
    if decision == "ask":
        yield from ask_attempts_used(call, state.starts, str(noted.error))
    if leaves_as_it_is(error) or isinstance(error, (Declined, StepFailed, UndeclaredWrite)):
        raise error
    raise _step_failed(call, attempt, str(noted.error)) from error


def _step_failed(call: Call[StepSpec], attempt: int, error: str) -> StepFailed:
    return StepFailed(run_id=call.run_id, path=call.path, attempt=attempt, error=error)


# ── keeping the output ──────────────────────────────────────────────────────────────────────────────


def _keep(call: Call[StepSpec], attempt: int, ended: Ended, before: Observations) -> Steps[Kept]:
    """Turn what the body returned into artifacts. Raises: MilepostError when it cannot stand as an output."""
    if not call.spec.arguments.immutable and call.spec.arguments.encode(call.bound) != call.encoded:
        raise ArgumentsChanged(path=call.path)
    data, value = call.spec.output.round_trip(ended.value)
    output = yield from keep_bytes(data, call.spec.output.media_type)
    artifacts = [output]
    files, sources = yield from keep_manifests(call, before, value, artifacts)
    return Kept(attempt, value, output.pointer, files, sources, artifacts, ended.spent, ended.duration_s)


# ── verification and checkpoint ─────────────────────────────────────────────────────────────────────


def _checkpoint(call: Call[StepSpec], kept: Kept) -> Steps[bool]:
    """Verify and advance in one record. False: a check failed and the policy says again.

    Crash: before the checkpoint, an output that was kept is verified again without repeating the body.
    """
    spec = call.spec
    review = live_rule(call, "after") if spec.approving is not None or call.snapshot.reviews else None
    if (spec.verifiers or review is not None) and kept.artifacts:
        now = yield Now()
        yield Append((_output_recorded(call, kept, now.text),), kept.artifacts)
        kept.artifacts = []
    if spec.verifiers:
        problem: tuple[str, str] | None = yield Verify(kept.value)
        if problem is not None:
            yield from failed(call, kept.attempt, VerificationFailed(*problem), kept.duration_s)
            return False
    if review is not None:
        yield from may_stand(call, review, kept.output, kept.value, kept.files)
    now = yield Now()
    record = StepVerified(
        at=now.text,
        path=call.path,
        attempt=kept.attempt,
        inputs_fingerprint=call.fingerprint,
        output=kept.output,
        files=kept.files,
        sources=kept.sources,
        checks=spec.checks,
        versions=_versions(call),
        next_action=spec.next_action,
        spent=kept.spent,
        duration_s=round(kept.duration_s, 6),
        branch=call.branch,
    )
    yield Append((record,), kept.artifacts)
    return True


def _versions(call: Call[StepSpec]) -> dict[str, str]:
    """Return the versions a checkpoint carries: the call's own, and those of the steps inside it."""
    s = call.snapshot
    if call.path not in s.children:
        return call.versions
    within: dict[str, str] = {}
    for path in s.children[call.path]:
        state = s.steps.get(path)
        if state is not None and state.verified is not None:
            versions = state.verified.versions
            within[WITHIN + name_in(path)] = label_of(versions)
            within.update((name, code) for name, code in versions.items() if name.startswith(WITHIN))
    return {**call.versions, **dict(list(within.items())[:WITHIN_MAX])}


def _output_recorded(call: Call[StepSpec], kept: Kept, at: str) -> OutputRecorded:
    return OutputRecorded(
        at=at,
        path=call.path,
        attempt=kept.attempt,
        output=kept.output,
        files=kept.files,
        sources=kept.sources,
        spent=kept.spent,
        duration_s=kept.duration_s,
    )

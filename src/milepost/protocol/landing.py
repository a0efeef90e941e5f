"""What is recorded when it is known what became of a send: landed, found by lookup, or told by a person. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from milepost.errors import MilepostError
from milepost.protocol.call import Call
from milepost.protocol.failure import error_record
from milepost.protocol.keep import keep_bytes, keep_files
from milepost.protocol.keys import derive_key
from milepost.protocol.ops import Append, Artifact, Ended, Load, Now, Steps
from milepost.protocol.outcomes import Applied, Found, unwrapped
from milepost.protocol.spec import EffectSpec
from milepost.protocol.state import EffectState
from milepost.records.frozen import frozen
from milepost.records.model import AnswerEntered, ErrorRecord, Outcome, OutcomeRecorded, Pointer
from milepost.records.rows import ClaimRow
from milepost.records.shown import cut_to_size

REF_SIZE_MAX = 2048
"""Bytes of a provider's reference that are kept."""


@frozen
class Returned:
    """What an effect's caller gets: its result as it comes back from the record."""

    value: Any


def landed(
    call: Call[EffectSpec], attempt: int, key: str, request_digest: str, ended: Ended, *, late: bool = False
) -> Steps[Returned | None]:
    """Record that the provider accepted; return the result, None when it could not be kept.

    Crash: the intent stays open and is resolved on resume.
    """
    value, ref = _unwrapped(call.spec, ended.value)
    returned: Returned | None = None
    artifacts: list[Artifact] = []
    result: Pointer | None = None
    files: Pointer | None = None
    error: ErrorRecord | None = None
    try:
        data, decoded = call.spec.output.round_trip(value)
        kept: Artifact = yield from keep_bytes(data, call.spec.output.media_type)
        artifacts.append(kept)
        files = yield from keep_files(decoded, artifacts)
        result = kept.pointer  # only now: a result that names a file which could not be kept is not one
        returned = Returned(decoded)
    except MilepostError as refused:
        error = error_record(refused)
    now = yield Now()
    record = OutcomeRecorded(
        at=now.text,
        path=call.path,
        attempt=attempt,
        key=key,
        outcome=Outcome.APPLIED,
        ref=ref,
        result=result,
        files=files,
        error=error,
        late=late,
        next_action=call.spec.next_action,
        spent=ended.spent,
        duration_s=round(ended.duration_s, 6),
    )
    yield Append((record,), artifacts, claims=_claim_rows(call, record, request_digest, artifacts))
    return returned


def landed_late(call: Call[EffectSpec], ended: Ended) -> Steps[None]:
    """Record how a send ended that had been given up and still ran: what it raised proves nothing new.

    Crash: it stays unknown and is resolved on resume.
    """
    state = call.effect
    if ended.error is not None or state is None or state.last is None:
        return
    sent = state.last.intent
    yield from landed(call, sent.attempt, sent.key, sent.request_digest, ended, late=True)


def _claim_rows(
    call: Call[EffectSpec], record: OutcomeRecorded, request_digest: str, artifacts: Sequence[Artifact]
) -> tuple[ClaimRow, ...]:
    """Return how a key of scope="task" ended, to stand beside the record for later runs."""
    if not _is_shared(call, record.key) or record.outcome != Outcome.APPLIED:
        return ()
    data = next((a.data for a in artifacts if record.result and a.pointer == record.result), None)
    media_type = record.result.media_type if record.result else None
    return (
        ClaimRow(
            key=record.key,
            run_id=call.run_id,
            path=call.path,
            request_digest=request_digest,
            at=record.at,
            outcome=record.outcome,
            ref=record.ref,
            result=data,
            media_type=media_type,
        ),
    )


def _is_shared(call: Call[EffectSpec], key: str) -> bool:
    """Say whether runs share a key, and this one claimed it: the effect may have got scope="task" since it was sent."""
    own = derive_key(call.task.name, call.family, call.path, call.spec.name, call.item_key)
    return call.spec.scope == "task" and key != str(own)


def _unwrapped(spec: EffectSpec, value: Any) -> tuple[Any, str | None]:
    """Return the result and the provider's reference. The effect happened: a bad reference must not hide it."""
    result = unwrapped(value)
    try:
        ref = value.ref if isinstance(value, Applied) else spec.ref(value) if spec.ref is not None else None
        return result, _as_text(ref)
    except Exception as error:  # noqa: BLE001 – the user's ref=, or the text of what it gave
        return result, f"(ref= failed: {type(error).__name__})"


def _as_text(ref: object) -> str | None:
    """Return a reference as a record can hold it, whatever it is."""
    return None if ref is None else cut_to_size(str(ref), REF_SIZE_MAX)


def recovered(call: Call[EffectSpec], key: str, state: EffectState | None, found: Found[Any]) -> Steps[None]:
    """Close an open intent with what the provider has. Crash: it stays open and is looked up again."""
    data, _ = call.spec.output.round_trip(found.result)
    kept: Artifact = yield from keep_bytes(data, call.spec.output.media_type)
    now = yield Now()
    last = state.last if state is not None else None
    record = OutcomeRecorded(
        at=now.text,
        path=call.path,
        attempt=last.intent.attempt if last else 0,
        key=key,
        outcome=Outcome.APPLIED,
        ref=_as_text(found.ref),
        result=kept.pointer,
        recovered=True,
        next_action=call.spec.next_action,
    )
    digest = last.intent.request_digest if last else ""
    yield Append((record,), (kept,), wait=True, claims=_claim_rows(call, record, digest, (kept,)))


def answered(call: Call[EffectSpec], key: str, request_digest: str, answer: AnswerEntered) -> Steps[None]:
    """Record what a person said became of an effect. Crash: the answer stands and is acted on by the next resume."""
    now = yield Now()
    record = answered_outcome(call.path, call.effect, key, answer, now.text)
    kept: list[Artifact] = []
    if answer.result is not None and _is_shared(call, key):
        kept.append(Artifact(answer.result, (yield Load(answer.result, f"answered result of {call.path}"))))
    yield Append((record,), wait=True, claims=_claim_rows(call, record, request_digest, kept))


def answered_outcome(path: str, state: EffectState | None, key: str, answer: AnswerEntered, at: str) -> OutcomeRecorded:
    """Return the outcome a person's answer stands for. `applied` without a result asks for it when it is needed."""
    happened = answer.choice == "applied"
    last = state.last if state is not None else None
    return OutcomeRecorded(
        at=at,
        path=path,
        attempt=last.intent.attempt if last else 0,
        key=last.intent.key if last else key,
        outcome=Outcome.APPLIED if happened else Outcome.REJECTED,
        ref=answer.ref,
        result=answer.result,
        recovered=True,
        error=None if happened else ErrorRecord("NotApplied", f"{answer.by}: {answer.note}"),
    )

"""Keys of scope="task": the first intent claims the key; a later run adopts, waits or asks. Pure."""

from __future__ import annotations

from datetime import timedelta

from milepost.protocol.asking import asking
from milepost.protocol.call import Call
from milepost.protocol.keep import JSON, beside
from milepost.protocol.ops import Append, Artifact, Claim, Moment, Now, Steps, TakeClaim, Wait
from milepost.protocol.request import Request
from milepost.protocol.spec import EffectSpec
from milepost.records.model import Outcome, OutcomeRecorded, QuestionKind
from milepost.records.rows import ClaimRow
from milepost.records.times import format_time

CLAIM_POLL = timedelta(seconds=1)
"""How often an open claim of another run is looked at."""
CLAIM_POLLS_MAX = 60
"""Looks at an open claim of another run before a person is asked."""


def settle_claim(call: Call[EffectSpec], request: Request) -> Steps[None]:
    """Own the key, adopt what its owner applied, or ask.

    Crash: a key claimed without an intent is found by its owner's next resume, or taken over by a later run.
    """
    key, request_digest = str(request.key), request.digest
    for _ in range(CLAIM_POLLS_MAX):
        owner: ClaimRow = yield Claim(key, request_digest)
        if owner.run_id != call.run_id and owner.outcome != Outcome.APPLIED:
            owner = yield TakeClaim(key, request_digest, owner, accepted=key in call.snapshot.accepted_plan)
        if owner.run_id == call.run_id:
            return
        if owner.outcome == Outcome.APPLIED:
            yield from _adopt(call, owner, request_digest)
            return
        now: Moment = yield Now()
        yield Wait(format_time(now.at + CLAIM_POLL), f"{call.path} is under way in run {owner.run_id}")
    yield from _ask_open(call, owner)


def _adopt(call: Call[EffectSpec], owner: ClaimRow, request_digest: str) -> Steps[None]:
    """Record what the key's owner applied as applied here, too. Crash: the next resume adopts it."""
    kept = call.effect.accepted_request if call.effect is not None else None
    if request_digest not in (owner.request_digest, kept):
        yield from _ask_other_request(call, owner, request_digest)
    artifacts: list[Artifact] = []
    if owner.result is not None:
        artifacts.append(beside(owner.result, owner.media_type or JSON))
    now: Moment = yield Now()
    record = OutcomeRecorded(
        at=now.text,
        path=call.path,
        attempt=0,
        key=owner.key,
        outcome=Outcome.APPLIED,
        ref=owner.ref,
        result=artifacts[0].pointer if artifacts else None,
        adopted=owner.run_id,
        request_digest=owner.request_digest,
        next_action=call.spec.next_action,
    )
    yield Append((record,), artifacts)


def _ask_other_request(call: Call[EffectSpec], owner: ClaimRow, request_digest: str) -> Steps[None]:
    yield from asking(
        call,
        QuestionKind.REQUEST_CHANGED,
        sentence=f"{call.path} was applied by run {owner.run_id} with another request under the same key.",
        evidence={
            "key": owner.key,
            "owner": owner.run_id,
            "request_there": owner.request_digest,
            "here": request_digest,
        },
        about={"request_digest": request_digest},
    )


def _ask_open(call: Call[EffectSpec], owner: ClaimRow) -> Steps[None]:
    yield from asking(
        call,
        QuestionKind.PLAN_CHANGED,
        sentence=(
            f"Run {owner.run_id} owns the key of {call.path} and nobody knows whether it was sent there. Settle that "
            "run first, then accept; accepting while it is open takes the key over and sends. A run that was stopped "
            f"or pruned settles nothing any more: look for {owner.key} at {call.spec.provider}, and accept only if it "
            "is not there."
        ),
        evidence={"key": owner.key, "owner": owner.run_id, "path": owner.path},
        about={"paths": [owner.key]},
    )

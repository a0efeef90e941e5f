"""Every effect of a run and each of its sends, as data: key, request, who allowed it, what became of it. Pure."""

from __future__ import annotations

from typing import Any

from milepost.protocol.state import EffectState, Send
from milepost.runtime.opening import Opened
from milepost.views.steps import effect_stands


def sends_of(opened: Opened) -> list[dict[str, Any]]:
    """Return the effects in order of their first record, each with its sends."""
    return [_effect(state) for state in opened.snapshot.effects.values()]


def _effect(state: EffectState) -> dict[str, Any]:
    last = state.last
    return {
        "path": state.path,
        "provider": last.intent.provider if last else None,
        "key": (last.intent.key if last else None) or (state.applied.key if state.applied else None),
        "ref": state.applied.ref if state.applied else None,
        "stands": effect_stands(state),
        "sends": [_send(send) for send in state.sends],
    }


def _send(send: Send) -> dict[str, Any]:
    intent, outcome = send.intent, send.outcome
    return {
        "attempt": intent.attempt,
        "at": intent.at,
        "request": intent.request.to_json(),
        "request_digest": intent.request_digest,
        "answer": intent.answer,
        "outcome": str(outcome.outcome) if outcome else None,
        "outcome_at": outcome.at if outcome else None,
        "error": str(outcome.error) if outcome and outcome.error else None,
        "recovered": bool(outcome and outcome.recovered),
    }

"""What a question about an effect shows: which send it is about, what was sent then, and what would be sent now.

Whoever answers looks it up at the provider by hand. All doubts of a run are asked about at once.
"""

from __future__ import annotations

from typing import Any

import pytest
from desk import Desk
from provider import AnswerLost, Provider

from milepost import Key, effect, step, task
from milepost.errors import OutcomeUnknown, PlanChanged, RunEnded, StepFailed


@pytest.fixture
def provider(desk: Desk) -> Provider:
    return Provider(desk.clock)


def noting(provider: Provider, **options: Any) -> Any:
    @effect(name="note", **options)
    def note(key: Key, text: str) -> str:
        return provider.apply(key, text)

    return note


def losing(provider: Provider) -> Any:
    """Return an effect whose answers never come."""

    @effect(name="mail", key=lambda whom: whom)
    def mail(key: Key, whom: str) -> str:
        provider.apply(key, whom)
        raise AnswerLost

    return mail


def mailing(mail: Any) -> Any:
    """Return a plan that goes on when a mail fails."""

    @task(name="mailing")
    def plan() -> str:
        for whom in ("Ada", "Borg"):
            with pytest.raises(StepFailed):
                mail(whom)
        return "mailed"

    return plan


def asked_of(desk: Desk) -> list[tuple[str, str | None]]:
    return [(row.kind, row.path) for row in desk.questions]


def requests_of(desk: Desk) -> list[Any]:
    return [desk.evidence(row)["request"]["arguments"] for row in desk.questions]


# ── what was sent, what would be sent ───────────────────────────────────────────────────────────────


def test_the_send_that_was_just_this_request_is_named_as_the_one_before(desk: Desk, provider: Provider) -> None:
    """Without a key= several sends may be meant: the first of them would send a person to the wrong entry."""
    note, is_moved = noting(provider), [False]

    @step
    def first() -> str:
        return "" if is_moved[0] else note("one")

    @step
    def second() -> str:
        return "" if is_moved[0] else note("two")

    @step
    def third() -> str:
        return note("two") if is_moved[0] else ""

    @task(name="notes")
    def notes() -> str:
        return first() + second() + third()

    desk.dies(notes, at="append:step_started", nth=3, settled=True)
    is_moved[0] = True
    with pytest.raises(PlanChanged, match=r"the same effect was applied as second/note: send it once more\?"):
        desk.run(notes)
    evidence = desk.evidence()
    assert evidence["applied_as"] == ["second/note"]
    assert evidence["request"] == {"arguments": {"text": "two"}}
    assert "new_request" not in evidence
    assert len(provider.calls) == 2


def test_where_none_was_just_this_request_all_are_named_and_both_requests_shown(desk: Desk, provider: Provider) -> None:
    note, is_moved = noting(provider, key=lambda text: "the same"), [False]

    @step
    def inner() -> str:
        return note("one")

    @task(name="notes")
    def notes() -> str:
        return note("two") if is_moved[0] else inner()

    desk.dies_at_its_end(notes)
    is_moved[0] = True
    with pytest.raises(PlanChanged, match=r"applied as inner/note\[the same\]"):
        desk.run(notes)
    evidence = desk.evidence()
    assert evidence["request"] == {"arguments": {"text": "one"}}
    assert evidence["new_request"] == {"arguments": {"text": "two"}}


def test_a_doubt_shows_the_request_that_was_sent_not_the_one_the_plan_makes_now(desk: Desk, provider: Provider) -> None:
    note, texts = noting(provider), iter(["as sent", "as now"])

    @task(name="notes")
    def notes() -> str:
        return note(next(texts))  # type: ignore[no-any-return]

    desk.dies(notes, at="send")
    with pytest.raises(OutcomeUnknown, match="the plan makes another call now"):
        desk.run(notes)
    evidence = desk.evidence()
    assert evidence["request"] == {"arguments": {"text": "as sent"}}
    assert evidence["new_request"] == {"arguments": {"text": "as now"}}


# ── all at once ─────────────────────────────────────────────────────────────────────────────────────

BOTH = [("outcome_unknown", "mail[Ada]"), ("outcome_unknown", "mail[Borg]")]


def test_a_plan_that_ends_asks_about_all_that_is_in_doubt(desk: Desk, provider: Provider) -> None:
    with pytest.raises(OutcomeUnknown, match=r"The plan has ended, but nobody knows whether mail\[Ada\] happened"):
        desk.run(mailing(losing(provider)))
    assert asked_of(desk) == BOTH
    assert requests_of(desk) == [{"whom": "Ada"}, {"whom": "Borg"}]


def test_a_step_that_ends_asks_about_all_that_is_in_doubt_in_it(desk: Desk, provider: Provider) -> None:
    mail = losing(provider)

    @step
    def part() -> None:
        for whom in ("Ada", "Borg"):
            with pytest.raises(StepFailed):
                mail(whom)

    @task(name="mailing")
    def plan() -> None:
        part()

    with pytest.raises(OutcomeUnknown, match="part has ended, but nobody knows"):
        desk.run(plan)
    assert asked_of(desk) == [(kind, f"part/{path}") for kind, path in BOTH]


def test_a_cancelled_run_asks_about_all_that_is_in_doubt(desk: Desk, provider: Provider) -> None:
    """One resume and one look into the inbox for each would be a tedious way to end."""
    plan = mailing(losing(provider))
    desk.dies(plan, at="ask", phase="before", settled=True)
    desk.cancel()
    with pytest.raises(OutcomeUnknown, match=r"The run is cancelled, but nobody knows whether mail\[Ada\] happened"):
        desk.run(plan)
    assert asked_of(desk) == BOTH
    for row, choice in zip(desk.questions, ("applied", "not-applied"), strict=True):
        desk.answer(choice, question=row)
    with pytest.raises(RunEnded, match="cancelled"):
        desk.run(plan)
    assert len(provider.calls) == 2

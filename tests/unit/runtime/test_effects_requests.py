"""The exact request: what is recorded before a send is what is sent, then and later; files belong to it."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from desk import Desk
from posting import posting
from provider import Provider

from milepost import CannotTell, Found, Key, NotFound, Retry, effect, step, task
from milepost.errors import LeaseLost, LeaseTaken, OutcomeUnknown, RequestChanged
from milepost.runtime import adrive, crash
from milepost.runtime.leases import active_runs
from milepost.runtime.registry import spec_of

LEASE_S = 30.0


def mailing(provider: Provider, letter: Path) -> Any:
    @effect(provider="mail", key_lifetime=timedelta(days=1))
    def mail_letter(key: Key, letter: Path) -> str:
        return provider.apply(key, letter.read_text())

    @task
    def mails() -> str:
        return mail_letter(letter)

    return mails


@pytest.fixture
def letter(tmp_path: Path) -> Path:
    path = tmp_path / "letter.txt"
    path.write_text("Dear supplier")
    return path


def test_the_content_of_a_file_is_part_of_the_request_while_it_is_open(desk: Desk, letter: Path) -> None:
    """The same path with another letter in it is another mail."""
    provider = Provider(desk.clock, honours_keys=True)
    plan = mailing(provider, letter)
    desk.dies(plan, at="send")
    letter.write_text("Dear customer")
    with pytest.raises(OutcomeUnknown, match="another call"):
        desk.resume(plan)
    assert len(provider.calls) == 1


def test_the_content_of_a_file_is_part_of_the_request_when_it_is_applied(desk: Desk, letter: Path) -> None:
    provider = Provider(desk.clock, honours_keys=True)
    plan = mailing(provider, letter)
    desk.dies_at_its_end(plan)
    letter.write_text("Dear customer")
    with pytest.raises(RequestChanged):
        desk.resume(plan)
    desk.answer("send")
    assert desk.resume(plan) == "receipt-2"
    assert [body for _, body, _ in provider.ledger] == ["Dear supplier", "Dear customer"]


def allowed_once(desk: Desk, amounts: list[int]) -> tuple[Provider, Any]:
    """Apply the first amount, change the plan to the second, and let a person allow to send that."""
    provider = Provider(desk.clock)
    plan = posting(provider, amount=lambda: amounts[0])
    desk.dies_at_its_end(plan, "INV-7")
    amounts.pop(0)
    with pytest.raises(RequestChanged, match="1 → 2"):
        desk.resume(plan)
    desk.answer("send")
    return provider, plan


def test_what_a_person_allowed_for_one_request_is_no_leave_for_another(desk: Desk) -> None:
    """The plan changed once more after the answer: nobody has allowed that, so it is asked about again."""
    amounts = [1, 2, 3]
    provider, plan = allowed_once(desk, amounts)
    amounts.pop(0)
    with pytest.raises(RequestChanged, match="1 → 3"):
        desk.resume(plan)
    assert [body for _, body, _ in provider.ledger] == [["INV-7", 1]]
    desk.answer("send")
    assert desk.resume(plan) == "receipt-2"
    assert [body for _, body, _ in provider.ledger] == [["INV-7", 1], ["INV-7", 3]]
    assert len({key for key, *_ in provider.ledger}) == 2


def test_a_plan_that_goes_back_to_the_applied_request_gets_its_result(desk: Desk) -> None:
    """What a person allowed need not happen; what was applied still stands."""
    amounts = [1, 2, 1]
    provider, plan = allowed_once(desk, amounts)
    amounts.pop(0)
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.ledger) == 1


def test_the_request_a_person_allowed_is_sent_once_whatever_dies(desk: Desk) -> None:
    """Its intent takes the place of what was applied before: from there on it is the one that is looked at."""
    provider, plan = allowed_once(desk, [1, 2])
    desk.dies(plan, "INV-7", at="append:intent_recorded", phase="before")
    desk.dies(plan, "INV-7", at="send")
    with pytest.raises(OutcomeUnknown):
        desk.resume(plan)
    assert [body for _, body, _ in provider.ledger] == [["INV-7", 1], ["INV-7", 2]]


def test_an_equal_file_is_an_equal_request(desk: Desk, letter: Path) -> None:
    provider = Provider(desk.clock, honours_keys=True)
    plan = mailing(provider, letter)
    desk.dies(plan, at="send")
    letter.write_text("Dear supplier")
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.ledger) == 1


def test_an_unwatched_argument_is_no_part_of_the_request(desk: Desk) -> None:
    """A client object with its connection differs in every process."""
    provider = Provider(desk.clock, honours_keys=True)

    @effect(provider="accounting", unwatched=("client",), key_lifetime=timedelta(days=1))
    def post_by_client(key: Key, amount: int, client: object) -> str:
        return provider.apply(key, amount)

    @task
    def by_client() -> str:
        return post_by_client(10, object())

    desk.dies(by_client, at="send")
    assert desk.resume(by_client) == "receipt-1"


def test_arguments_changed_in_place_by_the_effect_are_sent_as_recorded(desk: Desk) -> None:
    """A first send that spoiled its own arguments must not spoil the second."""
    provider = Provider(desk.clock)
    bodies: list[list[int]] = []

    def never_there(key: Key, amounts: list[int]) -> Found[str] | NotFound | CannotTell:
        return NotFound() if len(bodies) < 2 else CannotTell("busy")

    @effect(provider="accounting", lookup=never_there, settle=timedelta(0), retry=Retry(on=ConnectionError, attempts=2))
    def post_amounts(key: Key, amounts: list[int]) -> str:
        bodies.append(list(amounts))
        amounts.append(99)
        if len(bodies) == 1:
            raise ConnectionError
        return provider.apply(key, amounts)

    @task
    def amounts_posted() -> str:
        return post_amounts([1, 2])

    assert desk.run(amounts_posted) == "receipt-1"
    assert bodies == [[1, 2], [1, 2]]


@pytest.mark.parametrize("place", [("append:intent_recorded", "durable"), ("send", "before")])
def test_nothing_is_sent_later_than_a_third_of_the_lease_after_its_intent(desk: Desk, place: tuple[str, str]) -> None:
    """A process that slept between intent and send may no longer be the one that speaks for the run."""
    provider = Provider(desk.clock)
    naps = [True]

    def sleeps_after_intent(label: str, phase: str) -> None:
        if (label, phase) == place and naps:
            naps.pop()
            desk.clock.move(timedelta(seconds=LEASE_S / 3 + 1))

    crash.armed = sleeps_after_intent
    try:
        assert desk.run(posting(provider), "INV-7", lease_s=LEASE_S) == "receipt-1"
    finally:
        crash.armed = None
    first, second = desk.records("outcome_recorded")
    assert (first.outcome, first.error.type) == ("rejected", "NotSent")
    assert second.outcome == "applied"
    assert len(provider.calls) == 1


def test_an_effect_that_waited_too_long_for_a_thread_is_not_sent(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """All threads were busy with sends that took their time: its intent is too old by then, so it makes another."""
    provider, begun, is_in_line = Provider(desk.clock), threading.Event(), threading.Event()

    @effect(key=lambda item: item, provider="accounting")
    def post_one(key: Key, item: str) -> str:
        if item == "slow":
            begun.set()
            assert is_in_line.wait(10)
            desk.clock.move(timedelta(seconds=LEASE_S / 3 + 1))
        return provider.apply(key, item)

    @task
    async def posts_both() -> list[str]:
        first = asyncio.ensure_future(post_one.aio("slow"))
        await asyncio.to_thread(begun.wait)
        return await asyncio.gather(first, post_one.aio("late"))

    sends = iter([lambda: None, is_in_line.set])

    def counted(label: str, phase: str) -> None:
        if (label, phase) == ("send", "before"):
            next(sends, is_in_line.set)()

    monkeypatch.setattr(adrive, "_pool", ThreadPoolExecutor(1))
    crash.armed = counted
    try:
        assert asyncio.run(desk.run(posts_both, lease_s=LEASE_S)) == ["receipt-1", "receipt-2"]
    finally:
        crash.armed = None
    late = [r for r in desk.records("outcome_recorded") if "late" in r.path]
    assert [r.outcome for r in late] == ["rejected", "applied"]
    assert late[0].error.type == "NotSent"
    assert len(provider.calls) == 2


def test_nothing_is_sent_once_the_lease_is_known_to_be_lost(desk: Desk) -> None:
    """Between intent and send the keeper heard that somebody else has the run: they will look the intent up."""
    provider = Provider(desk.clock)

    def is_succeeded_after_intent(label: str, phase: str) -> None:
        if (label, phase) == ("append:intent_recorded", "durable"):
            (run,) = active_runs()
            run.lose(LeaseLost())

    crash.armed = is_succeeded_after_intent
    try:
        with pytest.raises(LeaseTaken):
            desk.run(posting(provider), "INV-7")
    finally:
        crash.armed = None
    assert provider.calls == []
    assert desk.records("outcome_recorded") == []


def test_an_intent_is_durable_before_anything_is_sent(desk: Desk) -> None:
    """Whoever dies while sending leaves the exact request, its key and its time behind."""
    provider = Provider(desk.clock)
    seen: list[Any] = []

    def send(provider: Provider, key: str, amount: int) -> str:
        kept, desk_store = desk.store, desk.store
        desk.next_process()
        (intent,) = desk.records("intent_recorded")
        desk.store = kept
        assert desk_store is kept
        seen.append((intent.key, intent.provider, intent.effect, intent.attempt))
        return provider.apply(key, amount)

    desk.run(posting(provider, send=send), "INV-7")
    assert seen == [(provider.calls[0], "accounting", "post_invoice", 1)]


def test_an_effect_that_two_declarations_could_mean_is_not_looked_up_before_its_plan(desk: Desk) -> None:
    """The lookup of another provider would say not found, and the send would be repeated."""

    def declared() -> Any:
        @effect(provider="one")
        def post_ambiguous(key: Key) -> None: ...

        return post_ambiguous

    def declared_elsewhere() -> Any:
        @effect(provider="two")
        def post_ambiguous(key: Key) -> None: ...

        return post_ambiguous

    first, second = declared(), declared_elsewhere()
    assert dict(first.spec.versions) == dict(second.spec.versions)
    assert spec_of("post_ambiguous", first.spec.versions) is None


def test_a_step_around_an_effect_gives_it_its_path_and_its_key(desk: Desk) -> None:
    provider = Provider(desk.clock)

    @effect(provider="accounting")
    def post_in_step(key: Key) -> str:
        return provider.apply(key, "x")

    @step
    def wraps(number: int) -> str:
        return post_in_step()

    @task
    def wrapped() -> list[str]:
        return [wraps(1), wraps(2)]

    assert desk.run(wrapped) == ["receipt-1", "receipt-2"]
    assert [r.path for r in desk.records("intent_recorded")] == ["wraps/post_in_step", "wraps#2/post_in_step"]
    assert len(set(provider.calls)) == 2

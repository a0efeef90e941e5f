"""One function declared twice with other options: what a resume asks a provider is never asked of the wrong one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from desk import Desk
from posting import SETTLE
from provider import Provider

from milepost import CannotTell, Found, Key, NotFound, Task, effect, task
from milepost.runtime.registry import spec_of


def paying_either(provider: Provider) -> Task[[bool], Any]:
    """Return a task that pays through one of two banks, which are declared from one function."""

    def pay(key: Key, invoice: str) -> Any:
        return provider.apply(key, [invoice])

    def at_ours(key: Key, invoice: str) -> Found[Any] | NotFound | CannotTell:
        return provider.find(key)

    def at_theirs(key: Key, invoice: str) -> Found[Any] | NotFound | CannotTell:
        return NotFound()

    ours = effect(provider="ours", lookup=at_ours, settle=SETTLE)(pay)
    theirs = effect(provider="theirs", lookup=at_theirs, settle=SETTLE)(pay)

    @task
    def plan(is_ours: bool) -> Any:
        return (ours if is_ours else theirs)("INV-7")

    return plan


def test_an_open_intent_is_not_looked_up_at_the_provider_declared_last(desk: Desk) -> None:
    """The second bank has never heard of the payment: sending again on its word would pay twice."""
    provider = Provider(desk.clock)
    plan = paying_either(provider)
    desk.dies(plan, True, at="send")
    assert spec_of("pay", desk.records("intent_recorded")[0].versions) is None
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.ledger) == len(provider.calls) == 1


@pytest.mark.parametrize("seconds", [30, 60])
def test_a_declaration_made_again_alike_is_one(seconds: int) -> None:
    """Steps and effects by name are declared anew each time the plan runs; only other options make them two."""

    def post_again(key: Key, invoice: str) -> str:
        return invoice

    def declared(settle: int) -> Any:
        return effect(lookup=lambda key, invoice: NotFound(), settle=timedelta(seconds=settle))(post_again)

    first, second = declared(30), declared(seconds)
    assert first.spec.versions == second.spec.versions
    assert spec_of("post_again", second.spec.versions) is (second.spec if seconds == 30 else None)


def test_a_lookup_over_another_client_is_another() -> None:
    """The line is the same, what it asks is not."""

    def post_over(key: Key, invoice: str) -> str:
        return invoice

    def declared(client: object) -> Any:
        def found(key: Key, invoice: str) -> Any:
            return client and NotFound()

        return effect(lookup=found, settle=SETTLE)(post_over)

    ours, theirs = object(), object()
    again = (declared(ours), declared(ours))[1]
    assert spec_of("post_over", again.spec.versions) is again.spec
    assert spec_of("post_over", declared(theirs).spec.versions) is None

"""Numbers that mean nothing are refused where they are written, before anything is in doubt, and poison no run."""

from __future__ import annotations

import asyncio
import decimal
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from desk import Desk
from provider import Provider

from milepost import Applied, Key, Limits, Rate, Retry, effect, heartbeat, sleep, spent, step, task
from milepost.errors import BadOption, LimitReached, StepFailed
from milepost.protocol.used import Used
from milepost.runtime import journal

DAY = timedelta(days=1)
NAN, INFINITE = float("nan"), float("inf")
BAD_SPENDING: list[dict[str, Any]] = [
    {"cost": "NaN"},
    {"cost": NAN},
    {"cost": Decimal("Infinity")},
    {"cost": -1},
    {"cost": "much"},
    {"cost": True},
    {"cost": None},
    {"cost": 10**5000},
    {"cost": "1e-999999"},
    {"cost": "1." + "0" * 100},
    {"input_tokens": -1},
    {"input_tokens": 1.5},
    {"output_tokens": None},
    {"output_tokens": True},
    {"output_tokens": 2**63},
    {"currency": "\ud800"},
    {"currency": "E" * 33},
]


def spending(**said: Any) -> Any:
    @step
    def think() -> int:
        spent(**said)
        return 1

    @task(limits=Limits(cost=10, tokens=10))
    def thinks() -> int:
        return think()

    return thinks


@pytest.mark.parametrize("said", BAD_SPENDING, ids=range(len(BAD_SPENDING)))
def test_what_is_no_spending_is_refused_where_it_is_said(said: dict[str, Any]) -> None:
    """Also outside a run, so that a unit test finds it."""
    with pytest.raises(BadOption, match=rf"spent\({next(iter(said))}=…\): expected .*, found"):
        spent(**said)


def test_a_step_that_says_it_fails_and_its_run_goes_on_when_it_is_mended(desk: Desk) -> None:
    with pytest.raises(StepFailed, match=r"spent\(cost=…\)"):
        desk.run(spending(cost=-5))
    assert desk.resume(spending(cost="0.5")) == 1


@pytest.mark.parametrize("limits", [None, Limits(cost=10)], ids=["free", "limited"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_an_effect_that_says_it_is_applied_all_the_same(desk: Desk, limits: Limits | None, is_async: bool) -> None:
    """The provider has accepted: the outcome is recorded first, and then the caller is told what was wrong."""
    provider = Provider(desk.clock)

    def send(key: Key) -> str:
        receipt = provider.apply(key, 1)
        spent(cost="NaN")
        return receipt

    async def send_async(key: Key) -> str:
        return send(key)

    if is_async:
        pay_async = effect(name="pay", provider="bank")(send_async)

        @task(name="pays", limits=limits)
        async def pays_async() -> str:
            return await pay_async()

        plan: Any = pays_async
    else:
        pay = effect(name="pay", provider="bank")(send)

        @task(name="pays", limits=limits)
        def pays() -> str:
            return pay()

        plan = pays
    ran: Callable[[Any], Any] = asyncio.run if is_async else lambda result: result
    with pytest.raises(BadOption, match=r"spent\(cost=…\): .*found 'NaN'"):
        ran(desk.run(plan))
    assert ran(desk.resume(plan)) == "receipt-1"
    assert len(provider.calls) == 1


@pytest.mark.parametrize("ref", ["\ud800", NAN, 10**50, "r" * 5000], ids=["surrogate", "nan", "number", "long"])
@pytest.mark.parametrize("declared", [False, True], ids=["Applied", "ref="])
def test_a_reference_that_is_no_text_does_not_lose_the_outcome(desk: Desk, ref: Any, declared: bool) -> None:
    @effect(provider="bank", ref=(lambda result: ref) if declared else None)
    def pay(key: Key) -> Applied[str]:
        return "paid" if declared else Applied("paid", ref=ref)  # type: ignore[return-value]

    @task
    def pays() -> str:
        return pay()  # type: ignore[return-value]

    assert desk.run(pays) == "paid"
    (outcome,) = desk.records("outcome_recorded")
    assert 0 < len(outcome.ref.encode()) <= 2048


def test_sums_do_not_depend_on_how_the_thread_rounds(desk: Desk) -> None:
    """A body that sets two digits for its own sums must not round away what it spends."""

    @step
    def think() -> int:
        with decimal.localcontext() as context:
            context.prec = 2
            for _ in range(4):
                spent(cost="100.25")
        return 1

    @step
    def after() -> int:
        return 2

    @task(limits=Limits(cost=401))
    def thinks() -> int:
        return think() + after()

    with pytest.raises(LimitReached, match="401 of 401 cost"):
        desk.run(thinks)


def test_more_tokens_than_a_row_holds_poison_no_run(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """No single call can say so many; a journal may all the same add up to them."""
    monkeypatch.setattr(journal, "TOKENS_MAX", 7)
    assert desk.run(spending(input_tokens=9)) == 1
    row = desk.store.run("r")
    assert row is not None
    assert row.progress.tokens == 7


@pytest.mark.parametrize("said", [{"cost": "NaN"}, {"cost": "-3"}, {"cost": "x"}, {"input_tokens": -7}], ids=str)
def test_a_record_that_says_nothing_counts_nothing(said: dict[str, Any]) -> None:
    """Earlier code let it through: a run of then can still be resumed."""
    used = Used()
    used.spend("think", 1, {"cost": "2", "input_tokens": 3}, in_all=False)
    used.spend("match", 1, said, in_all=True)
    assert (used.cost, used.tokens) == (Decimal(2), 3)


@pytest.mark.parametrize(
    "said", [(NAN,), (INFINITE,), (-1,), (True,), ("x",), (10**400,), (1, NAN), (1, -2)], ids=range(8)
)
def test_a_heartbeat_says_numbers(desk: Desk, said: tuple[Any, ...]) -> None:
    @step
    def read() -> int:
        heartbeat(*said)
        return 1

    @task
    def reads() -> int:
        return read()

    with pytest.raises(StepFailed, match=r"heartbeat\((done|total)=…\): expected a number"):
        desk.run(reads)


@pytest.mark.parametrize(
    "bad", [NAN, INFINITE, -1, True, "1", 10**400], ids=["nan", "inf", "-1", "bool", "text", "huge"]
)
@pytest.mark.parametrize(
    "declares",
    [
        lambda bad: Limits(cost=bad) if bad != "1" else Limits(cost="one"),
        lambda bad: Limits(tokens=bad),
        lambda bad: Limits(wall=bad),
        lambda bad: Rate(bad, DAY),
        lambda bad: Rate(1, bad),
        lambda bad: Retry(on=OSError, factor=bad) if bad is not True else Retry(on=OSError, attempts=bad),
        lambda bad: Retry(on=OSError, first_wait=bad),
        lambda bad: Retry(on=OSError, longest_wait=bad),
        lambda bad: Retry(on=OSError, deadline=bad),
        lambda bad: effect(settle=bad)(lambda key: None),
        lambda bad: effect(key_lifetime=bad)(lambda key: None),
        lambda bad: effect(approve="before", approval_expires=bad)(lambda key: None),
        lambda bad: task(agreement=bad)(lambda: None) if bad is not True else task(shadow_first=bad)(lambda: None),
        lambda bad: task(lambda: None).options(lease_s=bad),
        lambda bad: sleep(bad),
    ],
    ids=range(15),
)
def test_what_is_declared_is_a_number_that_means_something(declares: Any, bad: Any) -> None:
    """Found out when the module is imported, not when a provider has just accepted something."""
    with pytest.raises(BadOption, match=r"expected .*, found"):
        declares(bad)


@pytest.mark.parametrize(
    "declares",
    [
        lambda: Rate(1, timedelta.max),
        lambda: Limits(wall=timedelta.max),
        lambda: Retry(on=OSError, longest_wait=timedelta.max),
        lambda: Retry(on=OSError, deadline=-DAY),
        lambda: effect(settle=timedelta.max)(lambda key: None),
        lambda: effect(key_lifetime=timedelta(0))(lambda key: None),
        lambda: effect(approve="before", approval_expires=timedelta.max)(lambda key: None),
        lambda: effect(next="\ud800")(lambda key: None),
        lambda: step(version="\ud800")(lambda: None),
        lambda: sleep(timedelta.max),
    ],
    ids=range(10),
)
def test_what_no_clock_and_no_record_can_hold_is_refused_when_it_is_declared(declares: Any) -> None:
    with pytest.raises(BadOption, match=r"expected .*, found"):
        declares()

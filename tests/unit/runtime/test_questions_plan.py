"""Rule 5: code between the steps changed while a run slept; no step ever reads another's record."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from desk import Desk
from provider import Provider

from milepost import CannotTell, Found, Key, NotApplied, NotFound, effect, step, task
from milepost.errors import DuplicateStep, OutcomeUnknown, PlanChanged, RunEnded, StepFailed

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@step
def collect_all() -> int:
    ran.append("collect")
    return 1


@step
def extract_all(number: int) -> int:
    ran.append("extract")
    return number + 1


@step
def match_all(number: int) -> int:
    ran.append("match")
    return number * 10


@step(name="match_every")
def renamed(number: int) -> int:
    ran.append("match_every")
    return number * 10


def plan_of(body: Callable[[], Any]) -> Any:
    @task(name="replanned")
    def replanned() -> Any:
        return body()

    return replanned


def as_it_was() -> int:
    return match_all(extract_all(collect_all()))


def killed_at_its_end(desk: Desk) -> None:
    desk.dies_at_its_end(plan_of(as_it_was))
    ran.clear()


def test_an_inserted_call_is_asked_about_before_it_runs(desk: Desk) -> None:
    """It stands where a finished call stood: what comes after may have been made without it."""
    killed_at_its_end(desk)

    def inserted() -> int:
        number = collect_all()
        collect_all()
        return match_all(extract_all(number))

    with pytest.raises(PlanChanged, match=r"calls collect_all#2, which has no record, where extract_all was finished"):
        desk.resume(plan_of(inserted))
    assert ran == []
    assert desk.evidence()["finished_and_not_called_yet"] == ["extract_all", "match_all"]
    desk.answer("accept")
    assert desk.resume(plan_of(inserted)) == 20
    assert ran == ["collect"]


def test_an_inserted_call_can_stop_the_run(desk: Desk) -> None:
    killed_at_its_end(desk)

    def inserted() -> int:
        renamed(1)
        return as_it_was()

    with pytest.raises(PlanChanged):
        desk.resume(plan_of(inserted))
    desk.answer("stop")
    with pytest.raises(RunEnded):
        desk.resume(plan_of(inserted))
    assert ran == []


def test_a_call_added_at_the_end_needs_no_question(desk: Desk) -> None:
    """Everything finished was called again already."""
    killed_at_its_end(desk)
    assert desk.resume(plan_of(lambda: renamed(as_it_was()))) == 200
    assert ran == ["match_every"]


def test_a_moved_call_finds_its_own_record(desk: Desk) -> None:
    """Names, not positions."""

    def two() -> list[int]:
        return [collect_all(), renamed(7)]

    desk.dies_at_its_end(plan_of(two))
    ran.clear()
    assert desk.resume(plan_of(lambda: [renamed(7), collect_all()])) == [70, 1]
    assert ran == []


def test_a_renamed_call_never_reads_the_old_record(desk: Desk) -> None:
    """First the new name is asked about, then the old one that was not called again."""
    killed_at_its_end(desk)

    def with_new_name() -> int:
        return renamed(extract_all(collect_all()))

    with pytest.raises(PlanChanged, match="match_every"):
        desk.resume(plan_of(with_new_name))
    desk.answer("accept")
    with pytest.raises(PlanChanged, match="match_all was finished before"):
        desk.resume(plan_of(with_new_name))
    assert ran == ["match_every"]
    desk.answer("accept")
    assert desk.resume(plan_of(with_new_name)) == 20
    assert ran == ["match_every"]


@pytest.mark.parametrize("mapped", [True, False], ids=["mapped", "looped"])
def test_a_renamed_step_asks_once_for_all_its_items(desk: Desk, mapped: bool) -> None:
    """Two hundred items were two hundred questions, each after a resume of its own."""
    name = ["convert"]

    @task
    def plan() -> list[int]:
        converted = step(name=name[0], key=lambda n: n)(tenfold)
        return converted.map(range(5)) if mapped else [converted(n) for n in range(5)]

    def tenfold(n: int) -> int:
        ran.append(name[0])
        return n * 10

    desk.dies_at_its_end(plan)
    ran.clear()
    name[0] = "convert_all"
    with pytest.raises(PlanChanged, match=r"Accepting covers every call of convert_all in this body\."):
        desk.resume(plan)
    desk.answer("accept")
    with pytest.raises(PlanChanged, match=r"convert\[0\], convert\[1\], convert\[2\] and 2 more was finished"):
        desk.resume(plan)
    desk.answer("accept")
    assert desk.resume(plan) == [0, 10, 20, 30, 40]
    assert ran == ["convert_all"] * 5


def test_a_name_accepted_in_one_body_is_asked_about_in_another(desk: Desk) -> None:
    """A person saw one place where the plan changed."""
    name = ["part"]

    @step
    def around() -> int:
        return step(name=name[0])(lambda: 1)() + renamed(1)

    @task
    def plan() -> int:
        return around() + step(name=name[0])(lambda: 1)() + renamed(2)

    desk.dies_at_its_end(plan)
    name[0] = "part_renamed"
    with pytest.raises(PlanChanged, match="The plan calls part_renamed, which"):
        desk.resume(plan)
    assert desk.snapshot().accepted_names == set()
    desk.answer("accept")
    with pytest.raises(PlanChanged, match="part was finished before"):
        desk.resume(plan)
    assert desk.snapshot().accepted_names == {"/part_renamed"}


def test_a_removed_call_is_asked_about_when_the_plan_returns(desk: Desk) -> None:
    killed_at_its_end(desk)
    shorter = plan_of(lambda: extract_all(collect_all()))
    with pytest.raises(PlanChanged, match="match_all was finished before, but the plan"):
        desk.resume(shorter)
    desk.answer("accept")
    assert desk.resume(shorter) == 2


def test_a_removed_call_inside_a_step_is_asked_about_when_that_step_returns(desk: Desk) -> None:
    """And the question costs the step no start."""
    is_short = [False]

    @step
    def outer_part() -> int:
        return collect_all() if is_short[0] else renamed(extract_all(collect_all()))

    @task
    def parted() -> int:
        return outer_part()

    desk.dies(parted, at="body", phase="before", nth=5)  # the task, outer, collect, extract, match_every
    is_short[0] = True
    with pytest.raises(PlanChanged, match="outer_part/extract_all was finished before"):
        desk.resume(parted)
    assert desk.snapshot().steps["outer_part"].starts == 1
    desk.answer("accept")
    assert desk.resume(parted) == 1


def test_an_effect_applied_under_another_path_is_asked_about_before_it_is_sent(desk: Desk) -> None:
    """Moved into a step, the same invoice would be posted under another key."""
    provider = Provider(desk.clock)
    is_moved = [False]

    @effect(provider="accounting", key=lambda invoice: invoice)
    def post_moved(key: Key, invoice: str) -> str:
        return provider.apply(key, invoice)

    @step
    def around(invoice: str) -> str:
        return post_moved(invoice)

    @task
    def moving() -> str:
        return around("INV-7") if is_moved[0] else post_moved("INV-7")

    desk.dies_at_its_end(moving)
    is_moved[0] = True
    with pytest.raises(PlanChanged, match="around"):
        desk.resume(moving)
    desk.answer("accept")
    with pytest.raises(PlanChanged, match=r"the same effect was applied as post_moved\[INV-7\]"):
        desk.resume(moving)
    assert len(provider.calls) == 1
    desk.answer("accept")
    with pytest.raises(PlanChanged, match="not call it again"):
        desk.resume(moving)
    desk.answer("accept")
    assert desk.resume(moving) == "receipt-2"


@pytest.mark.parametrize(("choice", "sent"), [("applied", 1), ("not-applied", 2)])
def test_an_effect_in_doubt_under_another_path_is_asked_about_before_it_is_sent(
    desk: Desk, choice: str, sent: int
) -> None:
    """The step around it was renamed after a death in the middle of the send: nobody knows, so nobody guesses."""
    provider = Provider(desk.clock)

    @effect(key=lambda number: str(number))
    def pay(key: Key, number: int) -> str:
        return provider.apply(key, number)

    @step
    def paying() -> str:
        return pay(7)

    @step
    def paying_out() -> str:
        return pay(7)

    @task(name="payday")
    def payday() -> str:
        return paying()

    @task(name="payday")
    def renamed_payday() -> str:
        return paying_out()

    desk.dies(payday, at="send", phase="durable")
    with pytest.raises(PlanChanged, match="paying was left in doubt before"):
        desk.run(renamed_payday)
    desk.answer("accept")
    with pytest.raises(OutcomeUnknown, match=r"paying_out/pay\[7\] has no record .* paying/pay\[7\] happened"):
        desk.run(renamed_payday)
    assert len(provider.calls) == 1
    if choice == "applied":
        desk.answer(choice, result="by hand")
        with pytest.raises(PlanChanged, match="applied as paying/pay"):
            desk.run(renamed_payday)
    else:
        desk.answer(choice)
        assert desk.run(renamed_payday) == "receipt-2"
    assert len(provider.calls) == sent


@pytest.mark.parametrize("mapped", [False, True], ids=["called", "mapped"])
@pytest.mark.parametrize(("name", "key"), [("pay_out", str), ("pay_in", lambda number: f"n{number}")])
def test_an_effect_in_doubt_is_settled_before_one_without_record_stands_in_its_place(
    desk: Desk, name: str, key: Callable[[int], str], mapped: bool
) -> None:
    """Renamed, or with a key= made another way, while a death has left it in doubt: it would be paid twice."""
    provider = Provider(desk.clock)

    @effect(name="pay_in", key=str)
    def pay(number: Key, amount: int) -> str:
        return provider.apply(number, amount)

    @effect(name=name, key=key)
    def pay_anew(number: Key, amount: int) -> str:
        return provider.apply(number, amount)

    def plan(paying: Any) -> Any:
        return plan_of(lambda: paying.map([7, 8], concurrency=1) if mapped else [paying(7), paying(8)])

    desk.dies(plan(pay), at="send", phase="durable")
    for choice in ("applied", "accept"):
        with pytest.raises(OutcomeUnknown if choice == "applied" else PlanChanged):
            desk.run(plan(pay_anew))
        assert len(provider.calls) == 1
        desk.answer(choice, result="by hand") if choice == "applied" else desk.answer(choice)
    with pytest.raises(PlanChanged, match="not call it again"):
        desk.run(plan(pay_anew))
    assert len(provider.calls) == 3, "a person knew both, and let both be sent"


def test_a_name_that_was_accepted_covers_no_doubt(desk: Desk) -> None:
    """A person accepted the new name; that its first send is in doubt since, they could not know."""
    provider = Provider(desk.clock)

    def paying(name: str, key: Callable[[int], str]) -> Any:
        @effect(name=name, key=key)
        def pay(number: Key, amount: int) -> str:
            return provider.apply(number, amount)

        return plan_of(lambda: pay(7))

    desk.dies_at_its_end(paying("pay_old", str))
    with pytest.raises(PlanChanged):
        desk.run(paying("pay_new", str))
    desk.answer("accept")
    desk.dies(paying("pay_new", str), at="send", phase="durable")
    with pytest.raises(
        OutcomeUnknown,
        match=r"pay_new\[n7\] has no record and may be .*, but nobody knows whether pay_new\[7\]",
    ):
        desk.run(paying("pay_new", lambda amount: f"n{amount}"))
    assert len(provider.calls) == 2


def test_a_step_in_the_place_of_one_with_an_effect_in_doubt_is_asked_about(desk: Desk) -> None:
    """The step and the effect in it were both renamed: nothing else says that one may be the other."""
    provider = Provider(desk.clock)

    @effect(key=str)
    def pay_first(key: Key, number: int) -> str:
        return provider.apply(key, number)

    @effect(key=str)
    def pay_second(key: Key, number: int) -> str:
        return provider.apply(key, number)

    @step
    def paying_first() -> str:
        return pay_first(7)

    @step
    def paying_second() -> str:
        return pay_second(7)

    desk.dies(plan_of(paying_first), at="send", phase="durable")
    with pytest.raises(PlanChanged, match="paying_second, which has no record, where paying_first was left in doubt"):
        desk.run(plan_of(paying_second))
    assert len(provider.calls) == 1


def test_what_was_looked_up_and_not_found_is_no_doubt(desk: Desk) -> None:
    """The provider itself said that nothing arrived: what stands in its place is no second send."""
    provider = Provider(desk.clock)

    def find(key: Key, number: int) -> Found[Any] | NotFound | CannotTell:
        return provider.find(key)

    @effect(key=str, lookup=find, settle=timedelta(0))
    def pay_known(key: Key, number: int) -> str:
        return provider.apply(key, number)

    desk.dies(plan_of(lambda: pay_known(7)), at="send", phase="before")
    with pytest.raises(OutcomeUnknown, match="plan has ended"):
        desk.run(plan_of(lambda: pay_known(8)))
    assert [body for _, body, _ in provider.ledger] == [8]


def test_what_was_applied_is_found_behind_what_was_rejected(desk: Desk) -> None:
    """The plan's own call was rejected, the step it fell back on paid; renamed, that step would pay once more."""
    provider, is_renamed = Provider(desk.clock), [False]
    provider.will_raise(NotApplied("503 before anything was read"))

    @effect(key=lambda number: str(number))
    def pay_one(key: Key, number: int) -> str:
        return provider.apply(key, number)

    @step
    def fall_back() -> str:
        return pay_one(7)

    @step(name="fall_back_renamed")
    def renamed_fall_back() -> str:
        return pay_one(7)

    @task
    def pays_somehow() -> str:
        with suppress(StepFailed):
            pay_one(7)
        return renamed_fall_back() if is_renamed[0] else fall_back()

    desk.dies_at_its_end(pays_somehow)
    is_renamed[0] = True
    with pytest.raises(PlanChanged):
        desk.run(pays_somehow)
    desk.answer("accept")
    with pytest.raises(PlanChanged, match="was applied as fall_back/pay_one"):
        desk.run(pays_somehow)
    assert [body for _, body, _ in provider.ledger] == [7]


def test_repeated_calls_are_numbered_on_the_line_that_calls_them(desk: Desk) -> None:
    def thrice() -> list[int]:
        return [match_all(n) for n in (1, 2, 3)]

    assert desk.run(plan_of(thrice)) == [10, 20, 30]
    assert [r.path for r in desk.records("step_verified")] == ["match_all", "match_all#2", "match_all#3"]


def test_a_duplicate_key_is_refused(desk: Desk) -> None:
    @step(key=lambda invoice: invoice)
    def keyed(invoice: str) -> str:
        return invoice

    with pytest.raises(DuplicateStep):
        desk.run(plan_of(lambda: keyed.map(["a", "b", "a"])))


def test_mapped_items_keep_their_records_when_the_list_is_cut(desk: Desk) -> None:
    """By key, not by position: the item that is left reads its own record."""

    @step(key=lambda invoice: invoice)
    def kept_item(invoice: str) -> str:
        ran.append(invoice)
        return invoice.upper()

    items = ["a", "b", "c"]
    plan = plan_of(lambda: kept_item.map(items))
    desk.dies_at_its_end(plan)
    ran.clear()
    items[:] = ["c", "a"]
    with pytest.raises(PlanChanged, match=r"kept_item\[b\]"):
        desk.resume(plan)
    desk.answer("accept")
    assert desk.resume(plan) == ["C", "A"]
    assert ran == []

"""What `@step` and `@effect` take about approval is checked where it is declared, before anything runs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from milepost import Key, effect, step
from milepost.errors import BadOption
from milepost.protocol.approving import Approving, approving
from milepost.records.arguments import ArgumentsCodec


def pay(payee: str, amount: int = 1) -> None:
    """Pay somebody."""


ARGUMENTS = ArgumentsCodec(pay, skip_first=False, unwatched=(), where="pay")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"approve": "after"}, 'approve=: expected "before"'),
        ({"approve": True}, 'approve=: expected "before"'),
        ({"review": "before"}, 'review=: expected "after"'),
        ({"approvers": "finance"}, 'such as ("finance", "ana@host"), found \'finance\''),
        ({"approvers": ("finance", "finance")}, "different names"),
        ({"approvers": ("",)}, "different names"),
        ({"approvers": (1,)}, "different names"),
        ({"approvers": (name for name in ("finance",))}, "different names"),
        ({"approvers": (), "approve": "before"}, "at least one name, found (); approvers=None lets anybody"),
        ({"approvers": []}, "at least one name, found []"),
        ({"approvals": 0}, "approvals=: expected 1 to 20, found 0"),
        ({"approvals": True}, "approvals=: expected 1 to 20"),
        ({"approvals": 21}, "approvals=: expected 1 to 20"),
        ({"approval_expires": timedelta(0)}, "approval_expires=: expected a timedelta above zero"),
        ({"summary": "Pay {amount"}, "is no format string"),
        ({"summary": "Pay {sum}"}, "{sum} is not among its parameters: payee, amount"),
        ({"summary": 7}, "expected a format string or a function"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(BadOption) as caught:
        approving("effect pay", ARGUMENTS, **{"approve": "before", **options})
    assert why in str(caught.value)


@pytest.mark.parametrize(
    "options", [{"approvers": ("finance",)}, {"approvals": 2}, {"approval_expires": timedelta(1)}, {"summary": "Pay"}]
)
def test_people_without_an_approval_are_a_mistake(options: dict[str, Any]) -> None:
    """Whoever names approvers and forgets approve= believes that somebody is asked."""
    with pytest.raises(BadOption, match="nothing asks for an approval"):
        step(**options)(pay)


@pytest.mark.parametrize(
    ("approvers", "words"),
    [
        (("a@b",), "2 of a@b (never enough, unless one of them is a group)"),
        (("a@b", "A@c"), "2 of a@b, A@c (never enough, unless one of them is a group)"),
        (("a@b", "c@b"), "2 of a@b, c@b"),
        (("a@b", "finance"), "2 of a@b, finance"),
    ],
)
def test_it_says_when_those_named_are_too_few(approvers: tuple[str, ...], words: str) -> None:
    found = approving("effect pay", ARGUMENTS, approve="before", approvers=approvers, approvals=2)
    assert found is not None
    assert found.in_words() == words


def test_an_effect_has_no_output_to_review() -> None:
    def send(key: Key) -> None:
        """Send it."""

    with pytest.raises(BadOption, match="an effect is done when it is sent"):
        effect(review="after")(send)  # type: ignore[call-overload]


async def _later(payee: str) -> str:
    return payee


@pytest.mark.parametrize(
    ("summary", "said"),
    [
        ("Pay {amount} EUR to {payee}", "Pay 9 EUR to ada"),
        ("Pay {payee!r:>7}", "Pay   'ada'"),
        (lambda payee, amount: f"{amount} for {payee}", "9 for ada"),
        (lambda payee, amount: 1 / 0, "(summary= failed: ZeroDivisionError)"),
        (lambda payee: payee, "(summary= failed: TypeError)"),
        (None, ""),
        ("x" * 1000, "x" * 488 + " …(cut)"),
    ],
)
def test_a_summary_is_one_bounded_sentence_and_never_fails_the_question(summary: Any, said: str) -> None:
    rule = Approving(before=True, summary=summary)
    found = rule.said(ARGUMENTS, {"payee": "ada", "amount": 9})
    assert found[:488] == said[:488]
    assert len(found.encode()) <= 500


def test_an_asynchronous_summary_is_refused() -> None:
    with pytest.raises(BadOption, match="summary="):
        approving("effect pay", ARGUMENTS, approve="before", summary=_later)  # type: ignore[arg-type]


def test_nobody_named_means_anybody_and_a_set_means_the_same_in_each_process() -> None:
    """What an approval is bound to must not come from the order in which this process hashes names."""
    names = [f"team-{number}" for number in range(20)]
    anybody = approving("pay", ARGUMENTS, approve="before", approvers=None)
    named = approving("pay", ARGUMENTS, approve="before", approvers=set(names))  # type: ignore[arg-type]
    assert anybody == Approving(before=True)
    assert named is not None
    assert named.approvers == tuple(sorted(names))

"""What a page shows first and once: headings, batches, changes, defaults, days. Nothing is lost on the way."""

from __future__ import annotations

import pytest

from milepost.console.arranging import (
    HEADLINES,
    arranged,
    change_parts,
    headline,
    hindrance,
    last_days,
    leading,
    parts_shown,
    role_shown,
)
from milepost.protocol.questions import CHOICES
from milepost.records.identity import Identity
from milepost.records.model import QuestionKind


def asking(kind: str, **facts: object) -> dict[str, object]:
    choices = [{"name": choice.name} for choice in CHOICES[QuestionKind(kind)] if choice.name != "redo"]
    return {"kind": kind, "path": "post[A]", "sentence": "Whole.", "choices": choices, "evidence": facts}


@pytest.mark.parametrize("kind", QuestionKind)
def test_each_kind_of_question_has_a_heading_also_without_evidence(kind: QuestionKind) -> None:
    """Evidence that was altered cannot be read; the question is asked all the same."""
    assert kind.value in HEADLINES
    for evidence in (None, {}, [], [{}]):
        assert headline({**asking(kind.value), "evidence": evidence})


def test_an_approval_is_headed_by_what_will_happen() -> None:
    assert headline(asking("approval", summary="Pay 7 to Ana")) == "Pay 7 to Ana"
    assert headline(asking("approval", provider="bank")) == "Send post[A] to bank?"
    assert headline({"kind": "news", "sentence": "Whole.", "choices": [], "evidence": None}) == "Whole."


def test_a_choice_is_offered_to_whoever_may_make_it() -> None:
    """Whoever gave theirs, runs the task or is not named reads why not; whoever answers is judged again."""
    given = [{"choice": "approve", "by": "ana@here", "role": "finance"}]
    asked = {"approval": {"approvers": ["finance", "ben"], "not": ["agent:pay@here"], "given": given}}
    may = {
        name: hindrance(asked, Identity(name, groups))
        for name, groups in (
            ("ben@there", ()),
            ("cleo@here", ("finance",)),
            ("dan@here", ()),
            ("Ana@there", ("finance",)),
        )
    }
    assert may["ben@there"] == may["cleo@here"] == ""
    assert may["dan@here"] == "finance, ben may answer, dan@here may not."
    assert may["Ana@there"] == "You answered approve; somebody else must answer as well."
    assert "runs the task" in hindrance(
        {"approval": {**asked["approval"], "approvers": []}}, Identity("agent:pay@here")
    )
    assert hindrance({"approval": None}, Identity("dan@here")) == hindrance({}, Identity("dan@here")) == ""


def test_no_choice_is_put_forward_where_a_person_says_what_they_know() -> None:
    """A button that stands out is an answer half given."""
    assert leading(asking("approval")) == "approve"
    assert leading(asking("outcome_unknown")) == leading(asking("store_went_back")) == ""


def test_a_batch_stands_where_its_first_question_does_and_no_question_twice() -> None:
    questions = [{"question_id": name, "evidence": 1} for name in ("a", "b1", "c", "b2")]
    batch = {"questions": [{"question_id": "b1"}, {"question_id": "b2"}, {"question_id": "b3"}]}
    shown = list(arranged(questions, [batch]))
    assert [one["question"]["question_id"] for one in shown] == ["a", "b1", "c"]
    assert [item["evidence"] for item in shown[1]["batch"]["questions"]] == [1, 1, None]


def test_changes_are_taken_apart_and_what_is_only_told_stays_whole() -> None:
    assert change_parts("$.arguments.amount: 100 → 250") == {"path": "amount", "old": "100", "new": "250"}
    assert change_parts('$.a["b: c"]: 1 → 2')["new"] == "2"
    assert change_parts("file a.eml changed") == {"path": "file a.eml changed", "old": None, "new": None}


def test_parts_of_several_sources_stay_apart_and_what_binds_comes_last() -> None:
    parts = [
        {"kind": "value", "name": "binding", "value": {"run": "x"}},
        {"kind": "facts", "name": "facts", "value": {"written_by": None}},
        {"kind": "value", "name": "used by", "value": ["extract"]},
        {"kind": "facts", "name": "facts", "value": {"written_by": "match"}},
        {"kind": "value", "name": "sends", "value": [{"at": 1}]},
    ]
    shown = parts_shown(parts)
    assert [part["name"] for part in shown] == ["facts", "facts", "sends", "binding"]
    assert shown[0]["value"] == {"written by": None, "used by": ["extract"]}
    assert parts[1]["value"] == {"written_by": None}


def call(name: str, at: int | None, **facts: str) -> dict[str, object]:
    return {"kind": "step", "name": name, "named_at": at, "facts": {"when it fails": "it is asked", **facts}}


def test_what_is_true_of_nearly_all_is_said_once_and_exceptions_at_their_call() -> None:
    role = {
        "calls": [call("c", 3), call("a", 1), call("b", 2, **{"when it fails": "it is tried again"}), call("d", None)],
        "warnings": ["step a has no verify=: x; has no next=: y", "step ab is another"],
    }
    shown = role_shown(role)
    assert shown["usual"] == {"step": {"when it fails": "it is asked"}}
    assert [(one["name"], one["own"]) for one in shown["calls"]] == [
        ("a", {}),
        ("b", {"when it fails": "it is tried again"}),
        ("c", {}),
    ]
    assert [one["name"] for one in shown["others"]] == ["d"]
    assert shown["calls"][0]["warns"] == ["has no verify=: x", "has no next=: y"]
    assert shown["warning_count"] == 1


def test_days_without_anything_are_shown_as_such() -> None:
    shown = last_days([{"day": "2026-11-29", "deaths": 2}, {"day": "2026-01-01", "deaths": 9}], "2026-11-30", "deaths")
    assert len(shown) == 14
    assert shown[0] == ("2026-11-17", 0.0)
    assert shown[-2:] == [("2026-11-29", 2.0), ("2026-11-30", 0.0)]

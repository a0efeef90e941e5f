"""Evidence in the parts a page shows: whatever a question holds is shown once, and nothing is lost."""

from __future__ import annotations

from milepost.views.questions import evidence_parts


def kinds(evidence: object) -> list[tuple[str, str]]:
    return [(part["kind"], part["name"]) for part in evidence_parts(evidence)]


def test_an_exact_request_is_whole_and_what_changed_comes_before_it() -> None:
    evidence = {"effect": "post", "key": "k", "request": {"n": 1}, "changes": ["$.n: 1 → 2"], "asked_anew": ["expired"]}
    assert kinds(evidence) == [
        ("changes", "asked anew because"),
        ("changes", "changes"),
        ("request", "request"),
        ("facts", "facts"),
    ]


def test_versions_stand_side_by_side_also_those_only_one_side_has() -> None:
    (part,) = evidence_parts(
        [{"of": "the task", "old": {"model": "a", "code": "1"}, "new": {"model": "b", "tools": "t"}}]
    )
    assert part["value"] == [
        {"name": "model", "old": "a", "new": "b"},
        {"name": "code", "old": "1", "new": None},
        {"name": "tools", "old": None, "new": "t"},
    ]


def test_every_fact_is_in_some_part() -> None:
    """A kind of question that comes later is shown all the same, as facts and JSON."""
    evidence = {"new_fact": 1, "nothing": None, "list": [1, 2], "table": {"a": {"b": 1}}, "empty": []}
    assert kinds(evidence) == [("facts", "facts"), ("value", "list"), ("value", "table")]
    assert evidence_parts(evidence)[0]["value"] == {"new_fact": 1, "nothing": None}


def test_no_evidence_has_no_parts() -> None:
    assert [evidence_parts(nothing) for nothing in (None, {}, [])] == [[], [], []]
    assert kinds("a text") == [("value", "evidence")]

"""What a form may say together: a decision covers what was shown, or what was changed and is called an edit."""

from __future__ import annotations

import json
from typing import Any

import httpx2 as httpx
import pytest
from running import Console, form_key, question_of, send_answer

from milepost.stores.sqlite.store import SqliteStore


def shown_arguments(client: httpx.Client, question: str) -> Any:
    """Return what the page puts into the editor of a question."""
    return client.get("/question.json", params={"id": question}).json()["editable"]


def is_open(client: httpx.Client, question: str) -> bool:
    found = client.get("/question.json", params={"id": question}).json()
    return found["answer"] is None and found["later"] == [] and not found["closed"]


@pytest.mark.parametrize("choice", ["approve", "decline"])
@pytest.mark.parametrize("request_", ['{"amount": 1, "to": "Ana"}', "", "{", "null", "{}"])
def test_a_changed_request_is_nothing_to_approve_or_decline(visitor: httpx.Client, choice: str, request_: str) -> None:
    """An edit that is dropped would send what its author took out of it: 100 instead of 1."""
    question = question_of(visitor, "edits-1")
    answer = send_answer(visitor, question=question, choice=choice, request=request_)
    assert answer.status_code == 409
    assert "the request was changed" in answer.text
    assert "press Edit" in answer.text
    assert is_open(visitor, question)


def test_a_request_that_stands_as_it_was_shown_goes_with_any_choice(visitor: httpx.Client) -> None:
    """The form always carries it; another spelling of the same JSON is the same."""
    question = question_of(visitor, "edits-2")
    request = json.dumps(shown_arguments(visitor, question), indent=7).replace("\n", "\r\n")
    assert send_answer(visitor, question=question, choice="approve", request=request).status_code == 303


def test_an_edit_is_recorded_as_one(visitor: httpx.Client) -> None:
    question = question_of(visitor, "edits-3")
    request = json.dumps({**shown_arguments(visitor, question), "amount": 1})
    answer = send_answer(visitor, question=question, choice="edit", request=request)
    assert answer.status_code == 303, answer.text
    found = visitor.get("/question.json", params={"id": question}).json()
    assert found["answer"]["choice"] == "edit"


def test_an_edit_is_about_the_file_it_names_as_it_is_then(visitor: httpx.Client, console: Console) -> None:
    """What lies there later was seen by nobody; a file that is not there is refused while somebody can correct it."""
    question = question_of(visitor, "edits-file")
    refused = send_answer(visitor, question=question, choice="edit", request='{"letter": "gone.txt"}')
    assert (refused.status_code, "names gone.txt, and there is nothing at" in refused.text) == (409, True)
    assert is_open(visitor, question)
    assert send_answer(visitor, question=question, choice="edit", request='{"letter": "in.txt"}').status_code == 303
    store = SqliteStore(console.store, create=False)
    (answer,) = store.answers("edits-file")
    store.close()
    assert [file["path"] for file in json.loads(answer.request or b"")["files"]] == ["in.txt"]


def test_what_goes_with_one_answer_goes_with_no_batch(visitor: httpx.Client) -> None:
    """It would be left out of all of them."""
    asked = visitor.get("/inbox.json", params={"run": "edits-many"}).json()["questions"]
    fields = {"form_key": form_key(visitor), "question": [q["question_id"] for q in asked], "choice": "approve"}
    own = {"origin": str(visitor.base_url).rstrip("/")}
    answer = visitor.post("/answer", data={**fields, "request": '{"to": "Eve"}'}, headers=own)
    assert answer.status_code == 409
    assert "one question" in answer.text
    assert all(is_open(visitor, question["question_id"]) for question in asked)


@pytest.mark.parametrize("beside", [{"ref": "R-1"}, {"result": "1"}])
def test_what_a_choice_does_not_take_is_not_left_out_in_silence(visitor: httpx.Client, beside: dict[str, str]) -> None:
    """Somebody who names the provider's reference does not mean that nothing arrived."""
    question = question_of(visitor, "asks-1")
    answer = send_answer(visitor, question=question, choice="not-applied", **beside)
    assert answer.status_code == 409
    assert f"takes no {next(iter(beside))}" in answer.text
    assert is_open(visitor, question)


@pytest.mark.parametrize(
    "twice",
    [
        {"choice": ["approve", "decline"]},
        {"choice": ["decline", "approve"]},
        {"choice": "edit", "request": ['{"amount": 1, "to": "Ana"}', '{"amount": 2, "to": "Ana"}']},
        {"choice": "decline", "note": ["too much", ""]},
    ],
)
def test_a_form_that_says_two_things_says_nothing(visitor: httpx.Client, twice: dict[str, str | list[str]]) -> None:
    """No page of ours sends one; whoever makes one did not mean the first by putting it first."""
    question = question_of(visitor, "edits-1")
    answer = send_answer(visitor, question=question, **twice)
    assert (answer.status_code, "the form says more than one" in answer.text) == (409, True)
    assert is_open(visitor, question)


def test_a_form_with_more_questions_than_a_page_shows_answers_none(visitor: httpx.Client) -> None:
    """Answering the first thousand and dropping the rest in silence would look like all of them."""
    question = question_of(visitor, "asks-1")
    answer = send_answer(visitor, question=[question] * 1001, choice="not-applied")
    assert (answer.status_code, "names 1001 questions" in answer.text) == (409, True)
    assert is_open(visitor, question)


def test_a_form_sent_by_no_button_decides_nothing(visitor: httpx.Client) -> None:
    """Enter in a field sends a form in some browsers, without a choice."""
    question = question_of(visitor, "edits-1")
    for fields in ({}, {"choice": ""}):
        assert send_answer(visitor, question=question, **fields).status_code == 409
    assert is_open(visitor, question)


def test_a_batch_of_nothing_says_what_to_do(visitor: httpx.Client) -> None:
    fields = {"form_key": form_key(visitor), "choice": "approve"}
    answer = visitor.post("/answer", data=fields, headers={"origin": str(visitor.base_url).rstrip("/")})
    assert answer.status_code == 409
    assert "Mark those to be answered so." in answer.text
    assert "(none)'" not in answer.text

"""A secret's value is nowhere but in what `read` returned."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from milepost.errors import BadOption
from milepost.records.codec import Codec
from milepost.records.secret import Secret, redact

VALUE = 'hunter2/"geheim ü'
ENVIRON = {"MAIL_PASSWORD": VALUE, "SHORT": "ab"}


def test_no_view_of_a_secret_shows_its_value() -> None:
    secret = Secret("MAIL_PASSWORD")
    assert secret.read(ENVIRON) == VALUE
    views = [repr(secret), str(secret), f"{secret:>40}", repr(pickle.dumps(secret)), repr([secret])]
    assert not any("hunter2" in view for view in views)
    assert copy.deepcopy(secret) == secret == pickle.loads(pickle.dumps(secret))
    assert Codec[Secret](Secret, where="w").encode(secret) == b'{"$secret":"MAIL_PASSWORD"}'


def test_what_was_read_is_taken_out_of_texts_however_it_is_quoted() -> None:
    """Error messages carry URLs and JSON bodies."""
    Secret("MAIL_PASSWORD").read(ENVIRON)
    for text in (VALUE, json.dumps({"p": VALUE}), "https://u:hunter2%2F%22geheim%20%C3%BC@host"):
        assert "hunter2" not in redact(text)
        assert "[secret MAIL_PASSWORD]" in redact(text)
    assert redact("nothing here") == "nothing here"


def test_a_value_too_short_to_be_secret_does_not_shred_texts() -> None:
    assert Secret("SHORT").read(ENVIRON) == "ab"
    assert redact("about") == "about"


def test_a_missing_variable_and_a_pasted_value_are_refused() -> None:
    with pytest.raises(BadOption, match="MAIL_PASSWORD is not set"):
        Secret("MAIL_PASSWORD").read({})
    with pytest.raises(BadOption) as caught:
        Secret("sk-live-123")
    assert "sk-live-123" not in str(caught.value)


def test_a_secret_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Secret("A").name = "B"
    assert len({Secret("A"), Secret("A"), Secret("B")}) == 2

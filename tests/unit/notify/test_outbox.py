"""The outbox: claimed by one, tried again later and later, given up, dropped, forgotten. The time comes in."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from milepost.config import NotifyConfig
from milepost.notify.channels import Channel, channels
from milepost.notify.due import Due, backoff
from milepost.notify.message import Reason
from milepost.notify.outbox import Outbox
from milepost.notify.sending import without_secrets
from milepost.stores.contract import QuestionRow

NOW = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DUE = Due(QuestionRow("q-1", "r", "approval", "", "It asks.", NOW.isoformat(), b""), Reason.ASKED, Channel("chat"))


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    made = Outbox(tmp_path / "store.sqlite.notify")
    made.note([DUE], NOW)
    return made


def test_only_one_claims(outbox: Outbox) -> None:
    assert len(outbox.claim([DUE], NOW, MINUTE)) == 1
    assert outbox.claim([DUE], NOW, MINUTE) == []
    assert len(outbox.claim([DUE], NOW + 2 * MINUTE, MINUTE)) == 1


def test_a_sender_that_was_too_slow_changes_nothing(outbox: Outbox) -> None:
    """Its claim ran out and another one sends: what it says now is not what became of that."""
    slow = outbox.claim([DUE], NOW, MINUTE)
    outbox.claim([DUE], NOW + 2 * MINUTE, MINUTE)
    outbox.failed(slow, "too late", NOW + 2 * MINUTE, 1)
    assert (str(outbox.all()[0].state), outbox.all()[0].last_error) == ("waiting", "")


def test_waits_grow_and_are_bounded() -> None:
    waits = [backoff(attempts).total_seconds() for attempts in (1, 2, 3, 8, 100)]
    assert waits == [10, 30, 90, 3600, 3600]


def test_what_is_noted_again_stays_as_it_is(outbox: Outbox) -> None:
    outbox.sent(outbox.claim([DUE], NOW, MINUTE), NOW)
    outbox.note([DUE], NOW + MINUTE)
    assert [str(row.state) for row in outbox.all()] == ["sent"]
    assert outbox.claim([DUE], NOW + MINUTE, MINUTE) == []


def test_an_outbox_does_not_grow_for_ever(outbox: Outbox) -> None:
    """Old rows of closed questions go; the newest stay."""
    many = [replace(DUE, question=replace(DUE.question, question_id=f"q-{number}")) for number in range(2, 12)]
    outbox.note(many, NOW)
    outbox.forget([f"q-{number}" for number in range(1, 12)], 3)
    assert [row.question_id for row in outbox.all()] == ["q-9", "q-10", "q-11"]


def test_an_outbox_is_for_its_owner_only(outbox: Outbox) -> None:
    assert outbox.path.stat().st_mode & 0o077 == 0


def test_channels_tell_no_secret() -> None:
    """Their names are recorded, printed and shown."""
    url = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/"
    found = channels(NotifyConfig(urls=(url, "env:CHAT")), {"CHAT": url}, None)[Reason.ASKED]
    assert [channel.name.partition("-")[0] for channel in found] == ["slack", "env:CHAT"]
    assert not any(part in channel.name for channel in found for part in url.split("/") if len(part) > 5)
    said = "POST https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ failed\x1b[2J"
    assert without_secrets(said, url) == r"POST https://hooks.slack.com/services/…/…/… failed\x1b[2J"

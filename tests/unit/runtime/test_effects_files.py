"""A file among an effect's arguments that changes while the effect waits: nothing else is sent than was allowed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from desk import Desk
from people import ADA, says
from provider import AnswerLost, Provider

from milepost import Key, Limits, NotApplied, NotFound, Rate, Retry, effect, task
from milepost.errors import ApprovalNeeded, OutcomeUnknown, PlanChanged
from milepost.runtime import crash

DAY = timedelta(days=1)
SLOW = Limits(sends=Rate(1, timedelta(hours=2)))
TWICE = Retry(on=(ConnectionError, NotApplied), attempts=5)


@pytest.fixture
def provider(desk: Desk) -> Provider:
    return Provider(desk.clock, honours_keys=True)


@pytest.fixture
def letter(tmp_path: Path) -> Path:
    path = tmp_path / "letter.txt"
    path.write_text("good")
    return path


def text_of(path: Path) -> str:
    return path.read_text() if path.is_file() else "".join(file.read_text() for file in sorted(path.iterdir()))


def mailing(provider: Provider, *letters: Path, limits: Limits | None = None, **options: Any) -> Any:
    """Return a task that mails each letter; with a limit a stamp is bought first, so that the rate is used up."""

    @effect(key=lambda: "stamp", key_lifetime=DAY)
    def buy_stamp(key: Key) -> str:
        return str(key)

    @effect(provider="mail", key=lambda letter: letter.name, key_lifetime=DAY, **options)
    def mail(key: Key, letter: Path) -> str:
        return provider.apply(key, text_of(letter))

    @task(limits=limits)
    def mails() -> list[str]:
        if limits is not None:
            buy_stamp()
        return mail.map(letters) if len(letters) > 1 else [mail(letters[0])]

    return mails


def mailing_async(provider: Provider, letter: Path, limits: Limits | None = None, **options: Any) -> Any:
    @effect(key=lambda: "stamp", key_lifetime=DAY)
    async def buy_stamp(key: Key) -> str:
        return str(key)

    @effect(provider="mail", key=lambda letter: letter.name, key_lifetime=DAY, **options)
    async def mail(key: Key, letter: Path) -> str:
        return provider.apply(key, text_of(letter))

    @task(limits=limits)
    async def mails() -> list[str]:
        if limits is not None:
            await buy_stamp()
        return [await mail(letter)]

    return mails


def approved(desk: Desk, plan: Any, of: Callable[[Any], Any] = lambda ran: ran) -> None:
    with pytest.raises(ApprovalNeeded):
        of(desk.run(plan))
    for question in desk.questions:
        says(desk, ADA, "approve", of=question)


def rewrites(path: Path, text: str = "evil") -> dict[str, Any]:
    """Return the option with which somebody changes a file as soon as the run waits for anything."""
    return {"waiting": lambda until, reason: path.write_text(text)}


def sent(provider: Provider) -> list[str]:
    return [body for _, body, _ in provider.ledger]


def fingerprints(desk: Desk, record: Any) -> list[str]:
    """Return what an intent says of the files it was about."""
    data = desk.store.artifacts("r", [record.request.digest])[record.request.digest].data
    assert data is not None
    return [entry["fingerprint"] for entry in json.loads(data)["files"]]


# ── with an approval ────────────────────────────────────────────────────────────────────────────────


def test_a_file_that_changes_while_a_rate_is_waited_for_voids_the_approval(
    desk: Desk, provider: Provider, letter: Path
) -> None:
    """People allowed the letter they saw; hours later another one lies under its name."""
    plan = mailing(provider, letter, limits=SLOW, approve="before")
    approved(desk, plan)
    with pytest.raises(ApprovalNeeded, match=r"by ada@office is void, \$\.request\.files\[0\]\.fingerprint"):
        desk.resume(plan, **rewrites(letter))
    assert provider.calls == []
    says(desk, ADA, "approve")
    desk.resume(plan)
    assert sent(provider) == ["evil"]


def test_a_file_that_becomes_the_declined_one_meanwhile_is_asked_about(
    desk: Desk, provider: Provider, letter: Path
) -> None:
    """When the renamed call began it was another letter, and nobody had to be asked about that one."""
    letter.write_text("bad")
    with pytest.raises(ApprovalNeeded):
        desk.run(mailing(provider, letter, approve="before"))
    says(desk, ADA, "decline")
    letter.write_text("good")
    changed = mailing(provider, letter, limits=SLOW, name="post_letter")
    for path in ("buy_stamp", "post_letter"):
        with pytest.raises(PlanChanged, match=path):
            desk.resume(changed, wait=False)
        says(desk, ADA, "accept")
    with pytest.raises(ApprovalNeeded, match="declined it as mail"):
        desk.resume(changed, **rewrites(letter, "bad"))
    assert provider.calls == []


def test_the_same_holds_on_an_event_loop(desk: Desk, provider: Provider, letter: Path) -> None:
    plan = mailing_async(provider, letter, limits=SLOW, approve="before")
    approved(desk, plan, asyncio.run)
    with pytest.raises(ApprovalNeeded, match="is void"):
        asyncio.run(desk.resume(plan, **rewrites(letter)))
    assert provider.calls == []


def test_one_of_many_is_asked_anew_and_the_others_are_sent(desk: Desk, provider: Provider, tmp_path: Path) -> None:
    first, second = tmp_path / "page one", tmp_path / "page two"
    for folder in (first, second):
        folder.mkdir()
        (folder / "page").write_text(folder.name)
    plan = mailing(provider, first, second, limits=SLOW, approve="before")
    approved(desk, plan)
    with pytest.raises(ApprovalNeeded, match=r"mail.page two.*is void"):
        desk.resume(plan, **rewrites(second / "page"))
    assert sent(provider) == ["page one"]


@pytest.mark.parametrize("error", [NotApplied("closed"), ConnectionError("reset")], ids=["rejected", "in doubt"])
def test_a_file_that_changes_before_it_is_tried_again_is_not_sent(
    desk: Desk, provider: Provider, letter: Path, error: Exception
) -> None:
    """What is sent again under a key is what was sent before, or somebody is asked."""
    plan = mailing(provider, letter, approve="before", retry=TWICE)
    approved(desk, plan)
    provider.will_raise(error)
    with pytest.raises((ApprovalNeeded, OutcomeUnknown), match=r"request|another call"):
        desk.resume(plan, **rewrites(letter))
    assert len(provider.calls) == 1
    assert sent(provider) == []


# ── without one: the intent says what is sent ───────────────────────────────────────────────────────


def test_the_intent_after_a_wait_is_about_the_file_as_it_is_then(desk: Desk, provider: Provider, letter: Path) -> None:
    """Nobody was asked: what is sent may be another letter, but the record must not say it was the first."""
    plan = mailing(provider, letter, limits=SLOW)
    desk.run(plan, **rewrites(letter))
    (*_, intent) = desk.records("intent_recorded")
    told = fingerprints(desk, intent)
    desk.run(mailing(provider, letter), run_id="s")
    (again,) = [r for r in desk.records("intent_recorded", run_id="s") if r.effect == "mail"]
    assert sent(provider)[0] == "evil"
    assert intent.request_digest == again.request_digest
    assert len(told) == 1


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_an_open_send_is_never_repeated_with_another_file(
    desk: Desk, provider: Provider, letter: Path, is_async: bool
) -> None:
    provider.will_lose_its_answer()
    ran: Any = asyncio.run if is_async else lambda result: result
    plan = (mailing_async if is_async else mailing)(provider, letter, retry=Retry(on=AnswerLost))
    with pytest.raises(OutcomeUnknown, match="another call"):
        ran(desk.run(plan, **rewrites(letter)))
    assert sent(provider) == ["good"]
    assert len(provider.calls) == 1


def test_a_lookup_that_finds_nothing_allows_to_send_the_same_again(
    desk: Desk, provider: Provider, letter: Path
) -> None:
    """The file changes while it settles at its provider: that is another letter."""
    provider.will_raise(ConnectionError("reset"))
    looks = {"lookup": lambda key, letter: NotFound(), "settle": timedelta(hours=1)}
    plan = mailing(provider, letter, retry=TWICE, **looks)
    with pytest.raises(OutcomeUnknown, match="another call"):
        desk.run(plan, **rewrites(letter))
    assert len(provider.calls) == 1


def test_a_file_that_never_stands_still_is_sent_as_its_intent_says(
    desk: Desk, provider: Provider, letter: Path
) -> None:
    """A log grows while it waits for its turn: that is no reason never to be sent."""
    turns = iter(range(9))
    grows = {"waiting": lambda until, reason: letter.write_text(f"{next(turns)}")}
    desk.run(mailing(provider, letter, limits=SLOW), **grows)
    assert sent(provider) == ["0"]


def test_effects_without_paths_are_looked_at_once(desk: Desk, provider: Provider) -> None:
    """Their request is bytes that nobody can change: nothing is looked at again."""
    seen: list[str] = []

    @effect(key_lifetime=DAY)
    def post(key: Key, amount: int) -> str:
        return provider.apply(key, amount)

    @task
    def posts() -> str:
        return post(1)

    crash.armed = lambda label, now: seen.append(label)
    try:
        desk.run(posts)
    finally:
        crash.armed = None
    assert "observe" not in seen

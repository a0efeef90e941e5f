"""Questions reach people through real servers and commands, once each, and a failure loses and delays nothing."""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from cli_shell import RAW, Shell
from hooks import Hook

from milepost.config import Config, NotifyConfig
from milepost.notify.delivery import Delivery, Notifier
from milepost.notify.message import Reason
from milepost.records.times import parse_time
from milepost.stores.sqlite.store import SqliteStore


def _configured(shell: Shell, notify: str, more: str = "") -> None:
    (shell.folder / "milepost.toml").write_text(f"[notify]\n{notify}\n{more}", encoding="utf-8")


def _asks(shell: Shell, run_id: str = "r", **environ: str) -> str:
    ended = shell.run("run", "asking.py", "--run-id", run_id, **environ)
    assert ended.status == 4
    return ended.err


def _question(shell: Shell) -> str:
    store = SqliteStore(shell.folder / ".milepost" / "store.sqlite", create=False)
    (row,) = store.questions()
    store.close()
    return row.question_id


@pytest.fixture
def asking(shell: Shell) -> Iterator[SqliteStore]:
    """A store with one open question, asked without telling anybody."""
    _asks(shell)
    store = SqliteStore(shell.folder / ".milepost" / "store.sqlite", create=False)
    yield store
    store.close()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Times:
    """A clock for one notifier, set by hand."""

    def __init__(self, store: SqliteStore) -> None:
        self.now = parse_time(store.questions()[0].asked_at)

    def __call__(self) -> datetime:
        return self.now

    def after(self, **time: float) -> None:
        self.now += timedelta(**time)


def _notifier(store: SqliteStore, clock: Times, **notify: Any) -> Notifier:
    config = Config(file=Path(store.location).parent / "milepost.toml", notify=NotifyConfig(**notify))
    return Notifier(store, config, now=clock, environ=os.environ)


def _rows(notifier: Notifier) -> list[tuple[str, str, int]]:
    return [(row.reason, str(row.state), row.attempts) for row in notifier.outbox.all()]


# ── through the command line, to servers ──


def test_a_webhook_hears_of_a_question_once(shell: Shell, hook: Callable[..., Hook]) -> None:
    """The run that asks tells; resuming it while it still asks tells nobody again."""
    there = hook()
    _configured(shell, 'urls = ["env:CHAT"]', '[console]\nurl = "https://mile.test/"')
    err = _asks(shell, CHAT=there.url)
    assert "told: env:CHAT" in err
    assert shell.run("resume", "r", CHAT=there.url).status == 4
    (taken,) = there.taken
    question = _question(shell)
    assert taken["title"] == "A run asks: r (attempts_used)"
    for said in (
        question,
        "run r, task fetches",
        f"milepost inbox {question}",
        f"https://mile.test/question?id={question}",
    ):
        assert said in taken["message"]


def test_what_a_run_says_is_inert_where_it_is_shown(shell: Shell, hook: Callable[..., Hook]) -> None:
    """A model's text must not show images, make links, call a channel or reorder what a person decides about."""
    there = hook()
    _configured(shell, f'urls = ["{there.url}"]')
    _asks(shell)
    text = there.taken[0]["message"]
    assert "no mail" in text
    assert not RAW.search(text)
    assert [bad for bad in ("](", "![", "http://evil", "<!channel>", " @here") if bad in text] == []


def test_mail_reaches_an_smtp_server(shell: Shell) -> None:
    """The oldest way to reach a person, through a server that speaks SMTP."""
    taken: list[bytes] = []

    class Keep:
        async def handle_DATA(self, server: object, session: object, envelope: Any) -> str:
            taken.append(envelope.content)
            return "250 OK"

    port = _free_port()
    controller = Controller(Keep(), hostname="localhost", port=port)
    controller.start()
    try:
        _configured(shell, f'urls = ["mailto://localhost:{port}?from=milepost@a.test&to=ana@a.test&mode=insecure"]')
        assert "told: mailto-" in _asks(shell)
    finally:
        controller.stop()
    mail = message_from_bytes(taken[0], policy=default)
    assert mail["Subject"] == "A run asks: r (attempts_used)"
    assert mail["To"] == "ana@a.test"
    body = mail.get_body(("plain", "html"))
    assert body is not None
    assert "fetch was started 1 time " in body.get_content()


def test_a_command_gets_the_question_as_json_and_no_shell_reads_it(shell: Shell) -> None:
    """Whatever a sentence holds is data on stdin, never a word of a command line."""
    script = shell.folder / "tell me"
    script.write_text(f"#!{sys.executable}\nimport sys; open('told', 'w').write(sys.stdin.read())\n", encoding="utf-8")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    _configured(shell, 'command = ["./tell me", "$(touch hacked)"]')
    assert "told: command" in _asks(shell)
    told = json.loads((shell.folder / "told").read_text(encoding="utf-8"))
    assert told["question_id"] == _question(shell)
    assert (told["reason"], told["run_id"], told["kind"]) == ("asked", "r", "attempts_used")
    assert [choice["name"] for choice in told["choices"]] == ["again", "stop"]
    assert not (shell.folder / "hacked").exists()


def test_a_failure_is_shown_everywhere_and_hides_its_url(shell: Shell, hook: Callable[..., Hook]) -> None:
    """The question stands, the exit status is the question's, and no message has the webhook's secret in it."""
    there = hook(refusals=99)
    _configured(shell, f'urls = ["{there.url}"]')
    err = _asks(shell)
    assert "not told: json-" in err
    shown = shell.run("notify")
    doctor = shell.run("doctor")
    inbox = shell.run("inbox")
    assert "waiting" in shown.out
    assert doctor.status == 3
    assert "1 notification did not go out" in doctor.out
    assert "1 notification did not go out" in inbox.err
    texts = (err, shown.out, shown.err, doctor.out, inbox.err)
    assert [text for text in texts if "s3cret" in text] == []


def test_a_test_message_says_which_channel_works(shell: Shell, hook: Callable[..., Hook]) -> None:
    there = hook()
    _asks(shell)  # makes the store; nobody is told yet
    _configured(shell, f'urls = ["{there.url}", "env:NOT_SET"]')
    ended = shell.run("notify", "--test", "--json")
    assert ended.status == 6
    assert [(c["channel"][:4], c["ok"]) for c in ended.json["channels"]] == [("json", True), ("env:", False)]
    assert "the environment variable NOT_SET is not set" in ended.json["channels"][1]["error"]
    assert there.taken[0]["title"] == "Milepost: a test"


def test_a_test_of_no_channel_is_no_success(shell: Shell) -> None:
    """Somebody ran it to be sure that people will hear of questions."""
    _asks(shell)
    ended = shell.run("notify", "--test")
    assert (ended.status, "no [notify]" in ended.err) == (2, True)


def test_a_wrong_setting_stops_no_run(shell: Shell) -> None:
    """The question is what counts: a typo in milepost.toml is told beside it."""
    (shell.folder / "milepost.toml").write_text("[notify]\nurlz = []\n", encoding="utf-8")
    err = _asks(shell)
    assert "nobody was told of the question" in err
    assert "notify.urls may be meant" in err


# ── reminders, escalations, retries: the clock is set by hand ──


def test_a_reminder_and_an_escalation_come_once_and_stop_with_the_answer(
    asking: SqliteStore, shell: Shell, hook: Callable[..., Hook]
) -> None:
    """Who has not looked is reminded, then somebody else hears of it; an answer ends that."""
    team, boss = hook(), hook()
    clock = Times(asking)
    after = {"remind_after": timedelta(hours=4), "escalate_after": timedelta(days=1)}
    notifier = _notifier(asking, clock, urls=(team.url,), escalate_to=(boss.url,), **after)
    notifier.deliver()
    assert notifier.next_moment() == clock.now + timedelta(hours=4)
    for _ in range(2):
        clock.after(hours=4)
        notifier.deliver()
    assert [taken["title"].partition(":")[0] for taken in team.taken] == ["A run asks", "Reminder"]
    clock.after(hours=16)
    notifier.deliver()
    notifier.deliver()
    assert [taken["title"].partition(":")[0] for taken in boss.taken][-1] == "Nobody has answered"
    assert _rows(notifier) == [("asked", "sent", 1), ("reminder", "sent", 1), ("escalation", "sent", 1)]


def test_a_failed_notification_is_tried_again_later_and_later_and_then_given_up(
    asking: SqliteStore, hook: Callable[..., Hook]
) -> None:
    """Bounded: a dead webhook is not called for ever, and what was given up is shown and can be tried once more."""
    there = hook(refusals=2)
    clock = Times(asking)
    notifier = _notifier(asking, clock, urls=(there.url,), attempts=2)
    notifier.deliver()
    assert _rows(notifier) == [("asked", "waiting", 1)]
    notifier.deliver()  # not before its time
    assert _rows(notifier) == [("asked", "waiting", 1)]
    clock.after(seconds=10)
    notifier.deliver()
    assert _rows(notifier) == [("asked", "failed", 2)]
    assert "503" in notifier.outbox.all()[0].last_error
    clock.after(days=1)
    assert notifier.deliver().sent == []
    notifier.outbox.again(clock())
    notifier.deliver()
    assert _rows(notifier) == [("asked", "sent", 1)]


def test_what_is_answered_is_not_told_any_more(asking: SqliteStore, shell: Shell, hook: Callable[..., Hook]) -> None:
    clock = Times(asking)
    there = hook(refusals=1)
    notifier = _notifier(asking, clock, urls=(there.url,), remind_after=timedelta(hours=1))
    notifier.deliver()
    assert shell.run("answer", shell.question(), "stop").status == 0
    clock.after(hours=2)
    notifier.deliver()
    assert there.taken == []
    assert _rows(notifier) == [("asked", "dropped", 1)]


def test_a_question_in_other_words_than_the_run_asks_is_not_told(asking: SqliteStore) -> None:
    """Somebody who can write to the store would have our name put to it."""
    notifier = _notifier(asking, Times(asking), command=("true",))
    with closing(sqlite3.connect(asking.path)) as store, store:
        store.execute("update questions set sentence = 'Is all well?'")
    assert notifier.deliver() == Delivery()


def _deliver(location: str, url: str, barrier: Any) -> None:
    store = SqliteStore(Path(location), create=False)
    notifier = _notifier(store, Times(store), urls=(url,))
    barrier.wait()
    notifier.deliver()
    store.close()


def test_of_several_processes_one_tells(asking: SqliteStore, hook: Callable[..., Hook]) -> None:
    """A run, its watch and an impatient person deliver at the same moment: people hear once."""
    there = hook()
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    workers = [context.Process(target=_deliver, args=(asking.location, there.url, barrier)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert len(there.taken) == 1


def test_what_a_dead_sender_claimed_is_sent_when_the_claim_has_run_out(
    asking: SqliteStore, hook: Callable[..., Hook]
) -> None:
    """A death between claim and send delays a notification, and loses none."""
    there = hook()
    clock = Times(asking)
    notifier = _notifier(asking, clock, urls=(there.url,))
    ((parcel,),) = [notifier._parcels()]
    notifier.outbox.claim(parcel, clock(), timedelta(minutes=1))
    notifier.deliver()
    assert there.taken == []
    clock.after(minutes=2)
    notifier.deliver()
    assert len(there.taken) == 1
    assert _rows(notifier) == [("asked", "sent", 2)]


def test_a_command_that_hangs_is_ended(asking: SqliteStore) -> None:
    clock = Times(asking)
    notifier = _notifier(asking, clock, command=("sleep", "1000"), timeout=timedelta(seconds=0.1))
    assert notifier.deliver().failed == {"command": "the command did not end within 0.1 s"}


def test_many_questions_of_one_run_are_one_mail(asking: SqliteStore, hook: Callable[..., Hook]) -> None:
    """A hundred approvals asked together are one thing to look at."""
    from milepost.notify.message import bundle_message

    (row,) = asking.questions()
    message = bundle_message([row] * 12, Reason.ASKED, "fetches", "https://mile.test")
    assert message.title == "A run asks 12 questions: r (attempts_used)"
    assert "and 2 more" in message.text
    assert message.text.count(row.question_id) == 10


def test_what_another_process_notes_meanwhile_is_not_let_go_of(asking: SqliteStore) -> None:
    """A question newer than what we have read of the store is not one that was answered."""
    clock = Times(asking)
    other = _notifier(asking, clock, command=("/bin/false",))

    class Slow(Notifier):
        def _open(self) -> Any:
            other.deliver()
            return []  # as the store was before the question was asked

    Slow(asking, other.config, now=clock, environ=os.environ).deliver()
    assert [state for _, state, _ in _rows(other)] == ["waiting"]

"""Brings what is due to people: notes it in the outbox, claims it, sends it, records what became of it.

A few threads send side by side; whoever waits for them waits a bounded time only, and what is under way then is sent
or tried again by somebody later. Called by the command line.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from milepost.config import Config
from milepost.errors import MilepostError, RefusedError
from milepost.notify.channels import Channel, channels
from milepost.notify.due import Due, due, next_moment
from milepost.notify.message import Message, Reason, bundle_message
from milepost.notify.outbox import Claim, Notification, Outbox, State
from milepost.notify.sending import send
from milepost.protocol.failure import error_record
from milepost.protocol.questions import ended
from milepost.records.times import parse_time
from milepost.runtime.clock import SystemClock
from milepost.runtime.shown import altered
from milepost.runtime.standing import unanswered
from milepost.stores.contract import QuestionRow, Store

THREADS_MAX = 4
"""Notifications sent side by side."""
CLAIM_MARGIN = timedelta(seconds=60)
"""How much longer than a send may take its claim lasts."""
ROWS_KEPT = 2000
"""Rows of the outbox that are kept about questions that are closed, about."""
Parcel = list[Due]
"""What is told in one message: one question, or those of one run, kind and reason for one channel."""


@dataclass(slots=True)
class Delivery:
    """What one round brought: names of channels that took something, and what went wrong by channel."""

    sent: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


class Notifier:
    """Tells people about the open questions of one store, as `milepost.toml` says."""

    def __init__(
        self, store: Store, config: Config, *, now: Callable[[], datetime], environ: Mapping[str, str]
    ) -> None:
        self.store, self.config, self._now = store, config, now
        self.outbox = Outbox.beside(store.location)
        self.ways = channels(config.notify, environ, config.file.parent if config.file is not None else None)

    def deliver(self, *, within: timedelta | None = None) -> Delivery:
        """Send what is due, and return after that or after so long (`within`); what was not sent stays due.

        Crash: a notification is claimed; when its claim has run out, it is sent by whoever delivers next.
        Raises: StoreUnavailable when the store or the outbox cannot be read or written.
        """
        delivery = Delivery()
        parcels = self._parcels()
        if parcels:
            length = within if within is not None else self.config.notify.timeout * (len(parcels) + 1)
            self._send_all(parcels, delivery, length)
        return delivery

    def next_moment(self) -> datetime | None:
        """Return when there is something to send again: a reminder, an escalation or another attempt."""
        if not self.config.notify.reaches_somebody:
            return None
        later = next_moment(self._open(), self.config.notify, self._now())
        again = [parse_time(row.next_at) for row in self.outbox.all() if row.state is State.WAITING]
        return min([*again, *([later] if later is not None else [])], default=None)

    def _open(self) -> list[QuestionRow]:
        """Return the open questions that can be trusted; of the others `inbox` and `resume` tell."""
        found: list[QuestionRow] = []
        for run_id in sorted({row.run_id for row in self.store.questions()}):
            with suppress(RefusedError):
                found += unanswered(self.store, run_id)
        refused = altered(self.store, found)
        return [row for row in found if row.question_id not in refused]

    def _parcels(self) -> list[Parcel]:
        """Note what is due, let go of what is answered, and return what may be sent now."""
        if not self.config.notify.reaches_somebody:
            return []
        # The rows first: one that another process notes meanwhile, about a question too new for us, is left alone.
        now, rows, questions = self._now(), self.outbox.all(), self._open()
        self._tidy(rows, questions)
        known = {(row.question_id, row.reason, row.channel): row for row in rows}
        found = list(due(questions, self.config.notify, self.ways, now))
        self.outbox.note([d for d in found if _key_of(d) not in known], now)
        return _bundled([d for d in found if _may_be_sent(known.get(_key_of(d)), now)])

    def _tidy(self, rows: Sequence[Notification], questions: Sequence[QuestionRow]) -> None:
        """Let go of what is left to say about questions that are closed. Crash: the rest is let go next time."""
        still = {question.question_id for question in questions}
        closed = [row for row in rows if row.question_id not in still]
        self.outbox.drop(sorted({row.question_id for row in closed if row.state in (State.WAITING, State.FAILED)}))
        if len(rows) > 2 * ROWS_KEPT:
            self.outbox.forget(sorted({row.question_id for row in closed}), ROWS_KEPT)

    def _send_all(self, parcels: Sequence[Parcel], delivery: Delivery, length: timedelta) -> None:
        todo: queue.SimpleQueue[Parcel] = queue.SimpleQueue()
        for parcel in parcels:
            todo.put(parcel)
        over = threading.Event()
        workers = [
            threading.Thread(target=self._work, args=(todo, over, delivery), name="milepost-notify", daemon=True)
            for _ in range(min(THREADS_MAX, len(parcels)))
        ]
        for worker in workers:
            worker.start()
        end = SystemClock().ticks() + length.total_seconds()
        for worker in workers:
            worker.join(max(0.0, end - SystemClock().ticks()))
        over.set()

    def _work(self, todo: queue.SimpleQueue[Parcel], over: threading.Event, delivery: Delivery) -> None:
        while not over.is_set():
            try:
                self._send(todo.get_nowait(), delivery)
            except queue.Empty:
                return
            except MilepostError as error:
                delivery.failed["outbox"] = str(error)
                return

    def _send(self, parcel: Parcel, delivery: Delivery) -> None:
        """Send one parcel. Crash: as `deliver`."""
        config = self.config.notify
        claims = self.outbox.claim(parcel, self._now(), config.timeout + CLAIM_MARGIN)
        if not claims:
            return
        channel = parcel[0].channel
        error = trouble_of(channel, self._message(claims), config.timeout.total_seconds())
        if error:
            self.outbox.failed(claims, error, self._now(), config.attempts)
            delivery.failed[channel.name] = error
        else:
            self.outbox.sent(claims, self._now())
            delivery.sent.append(channel.name)

    def _message(self, claims: Sequence[Claim]) -> Message:
        first = claims[0].due
        row = self.store.run(first.question.run_id)
        task = row.task if row is not None else ""
        questions = [claim.due.question for claim in claims]
        return bundle_message(questions, first.reason, task, self.config.console.url)


def trouble_of(channel: Channel, message: Message, timeout_s: float) -> str:
    """Send, and say what went wrong, whatever it is: a service's own code runs here."""
    try:
        return send(channel, message, timeout_s)
    except MilepostError as error:
        return f"{ended(str(error))} {error.hint}"
    except Exception as error:  # noqa: BLE001 – a plugin of apprise may raise anything; the question must not be lost
        return f"sending raised {error_record(error).type}"


def _may_be_sent(row: Notification | None, now: datetime) -> bool:
    return row is None or (row.state is State.WAITING and parse_time(row.next_at) <= now)


def _bundled(found: Sequence[Due]) -> list[Parcel]:
    """Put into one parcel what one message can tell; a command gets each question by itself."""
    parcels: dict[tuple[str, ...], Parcel] = {}
    for d in found:
        alone = d.question.question_id if d.channel.command else ""
        parcels.setdefault((d.question.run_id, d.question.kind, d.reason, d.channel.name, alone), []).append(d)
    return list(parcels.values())


def _key_of(d: Due) -> tuple[str, str, str]:
    return d.question.question_id, d.reason.value, d.channel.name


def still_failing(outbox: Outbox) -> list[Notification]:
    """Return the notifications that were given up, or failed at least once and wait to be tried again."""
    return [row for row in outbox.all() if row.state is State.FAILED or (row.state is State.WAITING and row.last_error)]


def channel_list(ways: Mapping[Reason, Sequence[Channel]]) -> list[Channel]:
    """Return every channel there is, once."""
    return list({channel.name: channel for found in ways.values() for channel in found}.values())

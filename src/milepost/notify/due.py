"""Who is to be told what by now, and when the next thing is due. Pure: the time comes in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from milepost.config import NotifyConfig
from milepost.notify.channels import Channel
from milepost.notify.message import Reason
from milepost.records.times import parse_time
from milepost.stores.contract import QuestionRow

FIRST_WAIT = timedelta(seconds=10)
"""Wait after the first failed attempt; each next one is three times as long."""
FACTOR = 3
LONGEST_WAIT = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Due:
    """One notification that is to be sent: about which question, why, through which channel."""

    question: QuestionRow
    reason: Reason
    channel: Channel


def due(
    questions: Iterable[QuestionRow], config: NotifyConfig, ways: Mapping[Reason, Sequence[Channel]], now: datetime
) -> Iterator[Due]:
    """Yield what is due by now about open questions, whether it was sent already or not."""
    for question in questions:
        for reason, at in moments(question, config):
            if at <= now:
                yield from (Due(question, reason, channel) for channel in ways[reason])


def moments(question: QuestionRow, config: NotifyConfig) -> list[tuple[Reason, datetime]]:
    """Return when each notification about a question is due: at once, as a reminder, as an escalation."""
    asked_at = parse_time(question.asked_at)
    waits = {Reason.REMINDER: config.remind_after, Reason.ESCALATION: config.escalate_after}
    later = [(reason, asked_at + wait) for reason, wait in waits.items() if wait is not None]
    return [(Reason.ASKED, asked_at), *later]


def next_moment(questions: Iterable[QuestionRow], config: NotifyConfig, now: datetime) -> datetime | None:
    """Return when the next reminder or escalation is due, None when none is to come."""
    times = (at for question in questions for _, at in moments(question, config))
    return min((at for at in times if at > now), default=None)


def backoff(attempts: int) -> timedelta:
    """Return how long to wait after so many failed attempts."""
    seconds = FIRST_WAIT.total_seconds() * FACTOR ** min(attempts - 1, 20)
    return min(timedelta(seconds=seconds), LONGEST_WAIT)

"""`milepost notify`: who was told of which question, and what became of it; send a test, or what is due."""

from __future__ import annotations

from dataclasses import asdict

import click

from milepost.cli.opened import the_store
from milepost.cli.options import json_option
from milepost.cli.output import emit, note, table
from milepost.cli.people import the_config, the_notifier
from milepost.errors import MisuseError, UnavailableError
from milepost.notify.delivery import Notifier, channel_list, still_failing, trouble_of
from milepost.notify.message import trial_message
from milepost.notify.outbox import Notification
from milepost.views.opened import now, now_text
from milepost.views.words import clock_time, counted

SHOWN_MAX = 50
"""Notifications shown, the newest; --json has all of them."""
NOBODY = "milepost.toml has no [notify] with urls or command"


@click.command("notify")
@click.option("--test", "is_test", is_flag=True, help="Send a test message through every channel now.")
@click.option("--send", "sends", is_flag=True, help="Send what is due now, as a watch does.")
@click.option("--again", is_flag=True, help="As --send, and try what was given up once more.")
@json_option
def command(is_test: bool, sends: bool, again: bool, as_json: bool) -> int:
    """Show the notifications about questions: sent, waiting, failed, with their attempts and last error.

    Where they go stands in [notify] of milepost.toml. A test that reaches not every channel exits with 6, one of
    no channel at all with 2.

    \b
    Example:
      milepost notify --test
    """
    store = the_store()
    notifier = the_notifier(store, the_config(store))
    if is_test:
        return _test(notifier, as_json)
    if again:
        note(f"{counted(notifier.outbox.again(now()), 'notification')} will be tried once more.")
    if sends or again:
        delivery = notifier.deliver()
        note(f"sent: {', '.join(delivery.sent) or 'nothing'}")
    return _show(notifier, as_json)


def _show(notifier: Notifier, as_json: bool) -> int:
    rows, ways = notifier.outbox.all(), channel_list(notifier.ways)
    if as_json:
        channels = [{"channel": way.name, "trouble": way.trouble} for way in ways]
        emit({"channels": channels, "notifications": [asdict(row) for row in rows]})
        return 0
    if not ways:
        note(f"Nobody is told: {NOBODY}.")
    for way in ways:
        note(f"channel {way.name}" + (f": {way.trouble}" if way.trouble else ""))
    if rows:
        headers = ("question", "run", "why", "channel", "", "attempts", "when", "last error")
        table(headers, [_cells(row) for row in rows[-SHOWN_MAX:]])
    failing = still_failing(notifier.outbox)
    if failing:
        note(f"{counted(len(failing), 'notification')} did not go out; `milepost notify --again` tries them once more.")
    return 0


def _cells(row: Notification) -> tuple[object, ...]:
    when = clock_time(row.sent_at or row.next_at)
    return row.question_id, row.run_id, row.reason, row.channel, row.state, row.attempts, when, row.last_error


def _test(notifier: Notifier, as_json: bool) -> int:
    """Send a test message through every channel; nothing is recorded."""
    timeout_s = notifier.config.notify.timeout.total_seconds()
    ways, message = channel_list(notifier.ways), trial_message(now_text())
    if not ways:
        raise MisuseError(reason=NOBODY, hint="Add urls or a command; docs/watching.md shows how.")
    errors = {way.name: trouble_of(way, message, timeout_s) for way in ways}
    if as_json:
        emit({"channels": [{"channel": name, "ok": not error, "error": error} for name, error in errors.items()]})
    else:
        table(("channel", "", "error"), [(name, "failed" if error else "ok", error) for name, error in errors.items()])
    return UnavailableError.exit_status if any(errors.values()) else 0

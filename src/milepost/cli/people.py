"""Tells people that a run asks, and says what became of that. A question never fails or waits for a notification.

Called by `run` and `resume` after a run has asked, and by `inbox`, `doctor` and `watch`.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from milepost.cli.output import note
from milepost.config import Config, load_config
from milepost.errors import BadConfig, MilepostError
from milepost.notify.delivery import Notifier, still_failing
from milepost.notify.outbox import Outbox
from milepost.protocol.questions import ended
from milepost.stores.contract import Diagnosis, Store
from milepost.views.opened import now
from milepost.views.words import counted

WITHIN = timedelta(seconds=15)
"""How long `run` and `resume` wait for notifications before they leave; what is left is sent by whoever comes next."""
SENDS_LATER = "`milepost watch` or `milepost notify --send` tries again"


def the_config(store: Store) -> Config:
    """Return what `milepost.toml` sets, found from the working folder or beside the store. Raises: BadConfig."""
    return load_config(Path.cwd(), Path(store.location))


def the_notifier(store: Store, config: Config) -> Notifier:
    """Return what tells people about the questions of a store."""
    return Notifier(store, config, now=now, environ=os.environ)


def tell_people(store: Store, settings: Config | BadConfig) -> None:
    """Tell people about the open questions of a store, as was set when the run began; what goes wrong stops nothing.

    Crash: the questions are durable; what was not sent is sent by whoever delivers next.
    """
    try:
        if isinstance(settings, BadConfig):
            raise settings
        delivery = the_notifier(store, settings).deliver(within=WITHIN)
    except MilepostError as error:
        note(f"nobody was told of the question: {ended(str(error))} {error.hint}")
        return
    if delivery.sent:
        note(f"told: {', '.join(sorted(set(delivery.sent)))}")
    for channel, why in delivery.failed.items():
        note(f"not told: {channel}: {why}; {SENDS_LATER}")


def note_failing(store: Store) -> None:
    """Say when notifications have not reached anybody."""
    found = diagnosis(store)
    if not found.ok:
        note(f"{ended(found.found)} {found.hint}")


def diagnosis(store: Store) -> Diagnosis:
    """Return the line of `doctor` about notifications."""
    try:
        config = the_config(store)
        failing = still_failing(Outbox.beside(store.location))
    except MilepostError as error:
        return Diagnosis("notifications", False, str(error), error.hint)
    if failing:
        last = failing[-1]
        found = f"{counted(len(failing), 'notification')} did not go out; the last to {last.channel}: {last.last_error}"
        return Diagnosis("notifications", False, found, "`milepost notify` shows them; --again tries them once more.")
    is_set = config.notify.reaches_somebody
    found = f"as {config.file} says" if is_set else "nobody is told: no [notify] in milepost.toml"
    return Diagnosis("notifications", True, found)

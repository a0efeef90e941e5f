"""`milepost watch`: goes on with every run that can, each in a process of its own, until it is stopped."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from milepost.cli.opened import note_no_witness, the_store
from milepost.cli.options import json_option
from milepost.cli.output import emit, say
from milepost.cli.people import the_config, the_notifier
from milepost.stores.contract import Store
from milepost.views.opened import now, now_text, seal_key
from milepost.views.words import clock_time, counted
from milepost.watch.lock import only_watch
from milepost.watch.look import Looker
from milepost.watch.supervisor import Event, Supervisor, Watched


@click.command("watch")
@click.option("--at-once", type=click.IntRange(1, 1000), help="Runs at the same time.  [default: 2]")
@click.option("--once", is_flag=True, help="Go on with what can go on now, tell people, and leave.")
@json_option
def command(at_once: int | None, once: bool, as_json: bool) -> int:
    """Resume what was answered or is due, restart what died, and tell people what is asked, until stopped.

    Each run goes on in a process of its own (`milepost resume RUN --no-wait`). One that ends badly is started again
    after a wait that doubles, so often at most, counted across restarts of the watch; progress, or a person who moves
    the run, begins the count anew. A run whose own code failed is left for a person. SIGTERM and SIGINT stop the runs
    in order. What happens is said on stdout, a line each, or with --json an object each; what the runs say goes to
    stderr. One watch for each store. The settings are [watch] and [notify] of milepost.toml.

    \b
    Example:
      milepost watch
      milepost watch --once
    """
    store = the_store()
    config = the_config(store)
    note_no_witness()
    path = Path(store.location)
    watched = Watched(
        looker=Looker(store, seal_key(), now),
        notifier=the_notifier(store, config),
        config=config.watch if at_once is None else replace(config.watch, at_once=at_once),
        changed=_version(store),
        now=now,
        say=_say_json if as_json else _say_plain,
    )
    with only_watch(path.with_name(f"{path.name}.watch.lock"), store.location, now_text()):
        stop = Supervisor(watched, path).watch(once=once)
    return 128 + stop if stop else 0


def _version(store: Store) -> Callable[[], object]:
    """Return what tells cheaply whether anything was committed; a store that cannot tell is looked at now and then."""
    found: Callable[[], object] = getattr(store, "data_version", lambda: None)
    return found


def _say_json(event: Event) -> None:
    emit({"at": now_text(), **event}, one_line=True)
    sys.stdout.flush()


def _say_plain(event: Event) -> None:
    about = f"run {event['run_id']}: " if "run_id" in event else ""
    say(f"{clock_time(now_text())} {about}{_SAYS[event['event']](event)}")
    sys.stdout.flush()


_ENDS = {0: "done", 1: "failed", 4: "asks", 5: "waits", 129: "stopped", 130: "stopped", 143: "stopped"}


def _ended(event: dict[str, Any]) -> str:
    word = _ENDS.get(event["status"], f"ended with status {event['status']}")
    return word + (f", started again at {clock_time(event['again_at'])}" if "again_at" in event else "")


def _told(event: dict[str, Any]) -> str:
    told = [f"told {', '.join(event['channels'])}"] if event["channels"] else []
    return "; ".join([*told, *(f"not told: {channel}: {error}" for channel, error in event["failed"].items())])


_SAYS: dict[str, Callable[[dict[str, Any]], str]] = {
    "watching": lambda event: f"watching {event['store']}, at most {counted(event['at_once'], 'run')} at once",
    "started": lambda event: f"{event['why']}, goes on (start {event['start']}, process {event['pid']})",
    "ended": _ended,
    "given_up": lambda event: (
        f"left alone after {event['starts']} starts without a checkpoint; `milepost resume` tries once more"
    ),
    "told": _told,
    "trouble": lambda event: f"looks again in a while: {event['error']}",
    "stopping": lambda event: f"signal {event['signal']}: {counted(event['runs'], 'run')} to be stopped in order",
    "stopped": lambda event: "stopped",
}

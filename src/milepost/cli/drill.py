"""`milepost drill`: kill a task at every point, resume it, and compare with an undisturbed run."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from milepost.cli.inputs import parse_inputs
from milepost.cli.load import AnyTask, load_task
from milepost.cli.named_file import NAMED_FILE, NAMED_FOLDER, written
from milepost.cli.options import TEXT, json_option
from milepost.cli.output import emit, is_terminal, note, only_results_on_stdout, say
from milepost.errors import MisuseError
from milepost.records.shown import inert

if TYPE_CHECKING:
    from milepost.drill.choosing import Wanted
    from milepost.drill.outcome import Outcome
    from milepost.drill.world import Drilled

FUNCTION = "MODULE:FUNCTION"
FUNCTIONS = ("observe", "setup", "teardown")


@click.command("drill")
@click.argument("target", type=TEXT, metavar="FILE_OR_MODULE:TASK")
@click.argument("inputs", type=TEXT, metavar="[NAME=VALUE]...", nargs=-1)
@click.option(
    "--observe", type=TEXT, metavar=FUNCTION, help="Returns what the outside holds: lists, dicts, dataclasses."
)
@click.option(
    "--setup", type=TEXT, metavar=FUNCTION, help="Makes a world; may return environment variables, or a context."
)
@click.option("--teardown", type=TEXT, metavar=FUNCTION, help="Called when a world is over.")
@click.option("--points", default="all", metavar="all|N", help="How many trials of each kind, drawn with --seed.")
@click.option(
    "--point", "only", type=TEXT, multiple=True, metavar="POINT", help="Replay one trial, as a report names it."
)
@click.option(
    "--at-once", "--jobs", "workers", default=2, type=click.IntRange(1, 64), help="Worlds at once (default 2)."
)
@click.option("--seed", default=0, help="Which trials --points N draws.")
@click.option(
    "--ignore", type=TEXT, multiple=True, metavar="[STEP]$.FIELD", help="A field that is not compared: model text."
)
@click.option(
    "--allow", type=TEXT, multiple=True, metavar="STEP[:KIND]", help="A step whose sockets, processes, files are meant."
)
@click.option("--patience", "patience_s", default=120.0, metavar="SECONDS", help="When a process is stuck.")
@click.option("--real-time", is_flag=True, help="Sit out waits instead of moving the clock of the world.")
@click.option("--keep", type=NAMED_FOLDER, help="Keep the worlds of failed trials there: a new or empty folder.")
@click.option("--junit", type=NAMED_FILE, help="Write the trials as JUnit XML, too.")
@click.option("--plain", is_flag=True, help="Write plain lines, no live view.")
@json_option
def command(target: str, inputs: tuple[str, ...], junit: Path | None, plain: bool, as_json: bool, **how: Any) -> int:
    """Kill a task at every point, resume it, and compare with an undisturbed run.

    The task runs undisturbed in an empty folder, then once for every crash point it passed: a fresh world, a real
    SIGKILL there, resume in new processes until it is done. Then answers are lost, records damaged, sources changed.
    Compared are results, checkpoints, effects, model calls and what --observe returns; never wording, never times.
    Exits with 0 only if everything held, else with 1.

    \b
    Example:
      milepost drill plan.py:reconcile month=2026-10 --observe checks:ledger
    """
    from milepost.drill.campaign import drill
    from milepost.drill.junit import write_junit
    from milepost.drill.telling import lines

    task = load_task(target)
    progress = Progress(drawn=is_terminal(plain=plain))
    report = drill(
        _drilled(task, inputs, how), _wanted(how), replay=_replay(target, inputs, how), listener=progress.heard
    )
    progress.end()
    if as_json:
        emit(report.to_json())
    else:
        for line in lines(report):
            say(line)
    if junit is not None:
        with written(junit) as out:
            write_junit(report, out)
    return 0 if report.held else 1


def _drilled(task: AnyTask, inputs: tuple[str, ...], how: Mapping[str, Any]) -> Drilled:
    from milepost.drill.named import by_text, named
    from milepost.drill.world import Drilled

    args, kwargs = parse_inputs(task.spec, inputs)
    encoded = task.spec.arguments.round_trip(task.spec.arguments.bind(args, kwargs))
    with only_results_on_stdout():  # their modules may print while they are imported
        functions = {name: by_text(how[name], f"--{name}") for name in FUNCTIONS if how[name]}
    what = named(task, "task")
    return Drilled(what, task.spec.name, encoded.decode("utf-8"), real_time=how["real_time"], **functions)


def _wanted(how: Mapping[str, Any]) -> Wanted:
    from milepost.drill.choosing import Wanted

    taken = {name: how[name] for name in ("only", "seed", "workers", "ignore", "allow", "keep", "patience_s")}
    return Wanted(points=_count(how["points"]), **taken)


def _count(points: str) -> int | None:
    if points == "all":
        return None
    if not points.isdigit() or int(points) < 1:
        raise MisuseError(reason=f"--points {points}: expected `all` or a number from 1")
    return int(points)


def _replay(target: str, inputs: tuple[str, ...], how: Mapping[str, Any]) -> str:
    """Return the command that replays a point, up to the point's name."""
    words = ["milepost", "drill", target, *inputs]
    for name in FUNCTIONS:
        words += [f"--{name}", how[name]] if how[name] else []
    for name in ("ignore", "allow"):
        words += [word for value in how[name] for word in (f"--{name}", value)]
    words += ["--real-time"] if how["real_time"] else []
    return shlex.join([*words, "--point"])


class Progress:
    """Says on stderr how far the drill is: one line redrawn on a terminal, else a line per tenth and per failure."""

    def __init__(self, *, drawn: bool) -> None:
        self._drawn, self._tenth, self._failed = drawn, -1, 0
        note("drill: the undisturbed runs")

    def heard(self, outcome: Outcome, ended: int, total: int) -> None:
        """Hear of a trial that ended."""
        self._failed += outcome.failed
        said = f"drill: {ended} of {total} trials, {self._failed} failed"
        if self._drawn:
            sys.stderr.write(f"\r{said}  {inert(outcome.point)[:60].ljust(60)}")
            sys.stderr.flush()
        elif outcome.failed:
            note(f"  failed: {outcome.point}: {outcome.said or outcome.differences[0]}")
        elif (tenth := ended * 10 // total) != self._tenth:
            self._tenth = tenth
            note(said)

    def end(self) -> None:
        """Leave the line."""
        if self._drawn:
            sys.stderr.write(f"\r{' ' * 110}\r")

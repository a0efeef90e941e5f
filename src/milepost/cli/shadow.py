"""`milepost shadow report`: what shadow runs would have written, compared with what was done."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import click

from milepost.cli.opened import store_to_read, the_store
from milepost.cli.options import RUN, TEXT, json_option
from milepost.cli.output import emit, note, say, table
from milepost.errors import MisuseError
from milepost.records.shown import cut
from milepost.shadow.evidence import keep_report, over_time
from milepost.shadow.report import report
from milepost.stores.contract import Store
from milepost.views.words import clock_time, counted

HEADERS = ("compared", "effect", "key", "field", "would be", "was")
RUN_HEADERS = ("run", "started", "stands", "against", "agreed", "different", "missed", "extra", "agreement")
CELL_MAX = 60


@click.command("shadow")
@click.argument("what", type=click.Choice(["report"]))
@click.argument("run_id", metavar="[RUN]", required=False, type=RUN)
@click.option("--against", metavar="FILE|RUN", help="A CSV or JSON-lines file, or a live run, that says what was done.")
@click.option(
    "--on", "fields", type=TEXT, multiple=True, metavar="FIELD", help="A field that names one write; may be repeated."
)
@click.option(
    "--effect", type=TEXT, default="", help="Only writes of this effect; what leaves others out promotes nothing."
)
@click.option("--keep", is_flag=True, help="Keep the comparison in the store: what `milepost promote` rests on.")
@click.option(
    "--task", "task", type=TEXT, help="All shadow runs of this task over time, from the comparisons that were kept."
)
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@json_option
def command(
    what: str,
    run_id: str | None,
    against: str | None,
    fields: tuple[str, ...],
    effect: str,
    keep: bool,
    task: str | None,
    form: str,
    as_json: bool,
) -> int:
    """Tell what a shadow run would have written, compared with what people or the live system did.

    agreed: both did the same. different: field by field. missed: it was done, the run would not have. extra: the run
    would have, it was not done. Agreement is the share of agreed among all four. Rows are matched by --on, else by the
    field that holds the item key.

    \b
    Example:
      milepost shadow report dry-1 --against posted.csv --on invoice_number --keep
      milepost shadow report --task reconcile
    """
    store, form = the_store() if keep else store_to_read(), "json" if as_json else form
    if (run_id is None) == (task is None):
        raise click.UsageError("Name a shadow RUN, or --task for all shadow runs of a task.")
    if task is not None:
        if against or fields or effect or keep:
            raise click.UsageError("--task tells of comparisons that were kept: it goes with --format only.")
        return _over_time(over_time(store, task), form)
    return _one(store, str(run_id), against, fields, effect, keep=keep, form=form)


def _one(
    store: Store, run_id: str, against: str | None, on: tuple[str, ...], effect: str, *, keep: bool, form: str
) -> int:
    made = report(store, run_id, against=against, on=on, effect=effect)
    found = made.to_json()
    if keep:
        found["comparison_id"] = keep_report(store, made)
        note(f"kept as run {found['comparison_id']}")
        if made.left_out:
            note(f"it does not count for a promotion: not compared: {', '.join(made.left_out)}")
    if form == "json":
        emit(found)
    elif form == "csv":
        _csv(HEADERS, _lines(found))
    else:
        _say(found)
    return 0


def _say(found: dict[str, Any]) -> None:
    say(f"SHADOW run {found['run_id']} · task {found['task']} · {found['status']} · NOTHING WAS SENT")
    against = found["against"]
    if against is None:
        say(f"{counted(found['would_count'], 'write')} would have been made; --against FILE|RUN compares them")
    else:
        on = f", matched by {', '.join(found['on'])}" if found["on"] else ""
        on = f", effect {found['effect']} only{on}" if found["effect"] else on
        say(f"against {against['name']}{on}: {_counts(found['counts'])}; {_rate(found['agreement'])}")
    if found["left_out"]:
        say(f"not compared, effects: {', '.join(found['left_out'])}")
    for name, side in (("fields_only_here", "only in the run"), ("fields_only_there", "only in what was done")):
        if found[name]:
            say(f"not compared, {side}: {', '.join(found[name])}")
    rows = [tuple(cut(cell, CELL_MAX) for cell in row) for row in _lines(found)]
    if rows:
        say()
        table(HEADERS, rows)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.items())


def _rate(agreement: float | None) -> str:
    return "nothing to agree on" if agreement is None else f"agreement {agreement:.2%}"


def _lines(found: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each write that agrees or stands alone, and one for each field that does not agree."""
    for line in found["lines"]:
        about = (line["stands"], line["effect"], line["key"])
        if line["stands"] == "different":
            for each in line["differences"]:
                yield (*about, each["field"], _text(each["would"]), _text(each["did"]))
        else:
            yield (*about, "", _fields(line["would"]), _fields(line["did"]))


def _fields(fields: dict[str, Any] | None) -> str:
    return "" if fields is None else "; ".join(f"{name} {_text(value)}" for name, value in fields.items())


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _over_time(found: dict[str, Any], form: str) -> int:
    if form == "json":
        emit(found)
    elif form == "csv":
        _csv(RUN_HEADERS, _runs(found))
    elif not found["runs"]:
        raise MisuseError(reason=f"task {found['task']} has no shadow runs in this store; `milepost run --shadow`")
    else:
        table(RUN_HEADERS, list(_runs(found)))
        say()
        compared = f"{found['compared_count']} of {counted(len(found['runs']), 'shadow run')} compared"
        say(f"{compared}; all together: {_counts(found['counts'])}; {_rate(found['agreement'])}")
        promotion = found["promotion"]
        say(f"promoted by run {promotion['run_id']}" if promotion else "not promoted")
    return 0


def _runs(found: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for run in found["runs"]:
        counts = run["counts"] or {}
        numbers = (str(counts.get(name, "")) for name in ("agreed", "different", "missed", "extra"))
        stands = run["void"] or run["status"]
        rate = "not compared" if run["counts"] is None else _rate(run["agreement"]).removeprefix("agreement ")
        yield (run["run_id"], clock_time(run["started_at"]), stands, run["against"] or "", *numbers, rate)


def _csv(headers: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headers)
    writer.writerows(tuple(_inert_cell(cell) for cell in row) for row in rows)
    say(text.getvalue().rstrip("\n"), lines=True)


def _inert_cell(cell: str) -> str:
    """Keep a spreadsheet from taking what a model wrote for a formula."""
    is_number = cell.replace(".", "", 1).removeprefix("-").isdigit()
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r") and not is_number else cell

"""`milepost journal`: every record of a run, one a line; as JSON lines with its seals."""

from __future__ import annotations

import click

from milepost.cli.opened import store_to_read
from milepost.cli.options import RUN, json_option
from milepost.cli.output import emit, say
from milepost.records.model import Record
from milepost.stores.contract import StoredRecord
from milepost.views.journal import stored_object
from milepost.views.opened import read_whole
from milepost.views.summaries import summary
from milepost.views.words import clock_time


@click.command("journal")
@click.argument("run_id", metavar="RUN", type=RUN)
@json_option
def command(run_id: str, as_json: bool) -> int:
    """Print every record of a run, one a line: number, time, kind, path, what it says.

    --json writes each record as it is stored, with its seal, one JSON object a line. Records that cannot be trusted
    are not printed: the first of them is named, and the exit status is 3.

    \b
    Example:
      milepost journal october --json | jq -r .kind
    """
    opened = read_whole(store_to_read(), run_id)
    for line, record in opened.records:
        if as_json:
            emit(stored_object(line), one_line=True)
        else:
            say(_line(line, record))
    if opened.refusal is not None:
        raise opened.refusal
    return 0


def _line(line: StoredRecord, record: Record) -> str:
    path = getattr(record, "path", None) or "-"
    return f"{line.seq:>5}  {clock_time(record.at)}  {line.kind:<18}  {path}  {summary(record)}"

"""`milepost audit`: a run as one file for others, and the check of such a file without its store."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from milepost.audit.checking import Checked
from milepost.audit.contents import Heading, heading_of_run
from milepost.audit.exporting import Export
from milepost.audit.files import FORMS, check_file, write_record
from milepost.cli.named_file import NAMED_FILE, STDOUT, descriptor_of, told, written
from milepost.cli.opened import me, store_to_read
from milepost.cli.options import RUN, json_option
from milepost.cli.output import emit, note, table
from milepost.errors import AuditUnproven, RefusedError
from milepost.runtime.opening import check_key, row_of
from milepost.runtime.verify import verify_run
from milepost.views.opened import now_text, seal_key
from milepost.views.words import counted

UNSET = "Unset MILEPOST_SEAL_KEY and try again: this run was sealed without a key."


class OneOrTheOther(click.Group):
    """`audit RUN` exports; `audit verify FILE` checks. A run called like a command: `audit export RUN`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] not in (*self.commands, "-h", "--help"):
            args = ["export", *args]
        return super().parse_args(ctx, args)


@click.group("audit", cls=OneOrTheOther, subcommand_metavar="RUN | verify FILE", options_metavar="")
def command() -> None:
    """Write one self-contained record of a run, or check such a file on any machine, without the store.

    \b
    RUN [--format jsonl|csv|html] [--output FILE] [--with-artifacts] [--json]
      Who, what, when, on which inputs and versions, which approvals, every effect
      with its key and the provider's reference, and what could be proven: exit
      status 3 when something could not.
    verify FILE [--json]
      Prove the file, or name the line that is altered or missing (exit status 3).
      A run sealed with a key needs MILEPOST_SEAL_KEY; without it: 7, cannot tell.

    \b
    Example:
      milepost audit october --format html --output october.html
      milepost audit verify october.html
    """


@command.command("export")
@click.argument("run_id", metavar="RUN", type=RUN)
@click.option("--format", "form", type=click.Choice(list(FORMS)), help="jsonl when FILE does not say otherwise.")
@click.option("--output", type=NAMED_FILE, default=STDOUT, help="The file; stdout when left out, or -.")
@click.option("--with-artifacts", is_flag=True, help="Carry inputs, requests, outputs and evidence, up to 64 KiB each.")
@json_option
def export(run_id: str, form: str | None, output: Path, with_artifacts: bool, as_json: bool) -> int:
    """Write the audit record of RUN.

    \b
    Example:
      milepost audit october --with-artifacts --output october.csv
    """
    store = store_to_read()
    row = row_of(store, run_id)
    check_key(row, seal_key())
    verdicts = verify_run(store, run_id, seal_key(), os.environ)
    heading = heading_of_run(row, verdicts, at=now_text(), by=me(), with_artifacts=with_artifacts)
    chosen = form or (output.suffix[1:] if output.suffix[1:] in FORMS else "jsonl")
    lines = Export(store, heading, row.cancel).lines(seal_key())
    if output == STDOUT or descriptor_of(output) == 1:
        sys.stdout.flush()
        write_record(lines, FORMS[chosen], sys.stdout.buffer)
    else:
        with written(output) as out:
            write_record(lines, FORMS[chosen], out)
        _tell(heading, output, chosen, as_json)
    return 0 if heading.proven else RefusedError.exit_status


def _tell(heading: Heading, output: Path, form: str, as_json: bool) -> None:
    if as_json:
        about = {"run_id": heading.run_id, "file": str(output), "format": form, "records": heading.head_seq}
        emit({**about, "ok": heading.proven, "verdicts": [asdict(verdict) for verdict in heading.verdicts]})
        return
    check = f"milepost audit verify {shlex.quote(str(output))}"
    note(f"{output}: run {heading.run_id}, {counted(heading.head_seq, 'record')}; `{check}` checks it.")
    for verdict in heading.verdicts:
        if not verdict.ok:
            note(f"not proven: {verdict.what}: {verdict.found}")


@command.command("verify")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
def verify(file: Path, as_json: bool) -> int:
    """Prove an audit record, without the store of its run.

    \b
    Example:
      milepost audit verify october.html
    """
    with told(file, "read"):
        checked = check_file(file, seal_key())
    if as_json:
        emit(_object(file, checked))
    else:
        table(("what", "", "found"), list(_rows(checked)))
    if checked.missing_key is not None:
        if as_json:
            return AuditUnproven.exit_status
        unset = {"hint": UNSET} if checked.heading.seal_name is None else {}
        raise AuditUnproven(file=file, reason=checked.missing_key, **unset)
    return 0 if checked.heading.proven else RefusedError.exit_status


def _rows(checked: Checked) -> Iterator[tuple[str, str, str]]:
    heading, counts = checked.heading, checked.counts
    told = "ok" if checked.missing_key is None else "cannot tell"
    sealed = f"with key {heading.seal_name}" if heading.seal_name else "without a key: that shows damage, not a forger"
    yield (
        "run",
        "ok",
        f"{heading.run_id} of task {heading.task}, exported {heading.exported_at} by {heading.exported_by}",
    )
    yield "records", "ok", f"{counts['record']} in order, none missing, what is shown is what is recorded"
    yield "seals", told, checked.missing_key or f"chains, head, answers and lines hold; sealed {sealed}"
    yield "answers", "ok", f"{counts['answer']}, among them every one the run acted on"
    yield "artifacts", "ok", f"{counts['artifact']} listed, {checked.carried} carried with the recorded digests"
    failed = ", ".join(verdict.what for verdict in heading.verdicts if not verdict.ok)
    yield (
        "at export",
        "refused" if failed else "ok",
        f"not proven then: {failed}" if failed else "everything was proven",
    )


def _object(file: Path, checked: Checked) -> dict[str, object]:
    return {
        "file": str(file),
        "run_id": checked.heading.run_id,
        "ok": checked.missing_key is None,
        "cannot_tell": checked.missing_key,
        "counts": dict(checked.counts),
        "carried": checked.carried,
        "proven_at_export": checked.heading.proven,
    }

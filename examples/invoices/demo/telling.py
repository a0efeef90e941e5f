"""What the demo prints: what it will do, where each process died, both books side by side, and what to type next.

Words and tables only; decides nothing. Works without a terminal, in plain lines.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from invoices.demo.books import Books, digest_of
from invoices.demo.places import DIED_UNRECORDED_MAX, Place
from invoices.demo.stage import RUN, TARGET, Stage

SHORT = 12
PLAIN_WIDTH = 110


class Teller:
    """Prints to one console; `plain` text comes from files and providers and is never taken for markup."""

    def __init__(self, *, to_stderr: bool = False) -> None:
        stream = sys.stderr if to_stderr else sys.stdout
        self._console = Console(file=stream, highlight=False, width=None if stream.isatty() else PLAIN_WIDTH)

    def say(self, text: str = "") -> None:
        """Print one line of our own words, markup allowed."""
        self._console.print(text)

    def before(self, invoice_count: int, kept: Path | None) -> None:
        """Say what is going to happen, and where it stays if it is kept."""
        self.say("[bold]A month of supplier invoices, reconciled twice[/bold]")
        self.say(f"{invoice_count} mails are read, matched to purchase orders, and what does not fit is posted to an")
        self.say("accounting queue and mailed to the suppliers. First undisturbed. Then the same month again, killed")
        self.say("with SIGKILL at five places and resumed each time in a new process. Then the books are compared.")
        if kept is not None:
            self.say(f"[dim]Folder: {escape(str(kept))}[/dim]")
        self.say(
            "[dim]No model key is needed or used: a local service that answers by rules stands in for the model.[/dim]"
        )
        self.say("[dim]Queue, mail server and model are real processes on 127.0.0.1, one set for each month.[/dim]")

    def undisturbed(self, books: Books, seconds: float) -> None:
        """Say how the reference run went."""
        self.say()
        steps, effects = len(books.journal.verified), len(books.journal.applied)
        self.say(f"[bold]Undisturbed[/bold]  {steps} steps, {effects} effects, {seconds:.1f} s")
        self.say("[bold]Killed[/bold]")

    def killed(self, number: int, place: Place, steps: int, effects: int) -> None:
        """Say where a process died, and what stands in the journal now."""
        self.say(f"  [red]✗ {number}[/red] {escape(place.words)}")
        self.say(f"      [dim]stands: {steps} steps verified, {effects} effects applied[/dim]")

    def resumed(self, seconds: float) -> None:
        """Say that the last resume came through."""
        self.say(f"  [green]✓[/green] resumed to its end, {seconds:.1f} s with all deaths")

    def compared(self, undisturbed: Books, killed: Books) -> None:
        """Print both books side by side."""
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for column in ("", "", "undisturbed", "killed 5 times", ""):
            table.add_column(column, no_wrap=True)
        for row in _rows(undisturbed, killed):
            mark = "[green]=[/green]" if row.equal else "[red]≠[/red]"
            table.add_row(row.area, escape(row.what), escape(row.left), escape(row.right), mark)
        self.say()
        self._console.print(table)

    def saved(self, killed: Books) -> None:
        """Say what the resumes did not do again."""
        saved, journal = killed.journal.saved, killed.journal
        again = journal.start_count - len(journal.verified)
        self.say()
        self.say(f"[bold]Saved by {journal.resume_count} resumes[/bold], together")
        self.say(
            f"  not repeated: {saved.step_count} steps, {saved.effect_count} effects, {saved.token_count:,} tokens"
        )
        self.say(f"  their time: {saved.duration_s:.1f} s of work; steps started again: {again}")
        found = [f"{escape(outcome.path.rpartition('/')[2])} as {outcome.ref}" for outcome in journal.recovered()]
        self.say(f"  found at the provider instead of sent again: {', '.join(found) or 'none'}")

    def verdict(self, differences: Iterable[str]) -> None:
        """Say whether the two months are the same, and if not, in what they differ."""
        told = list(differences)
        self.say()
        if not told:
            self.say("[bold green]Equal.[/bold green] Nothing was posted twice, nothing was left out.")
        for line in told:
            self.say(f"[bold red]Different:[/bold red] {escape(line)}")

    def next(self, kept: Stage | None) -> None:
        """Say what to type next."""
        self.say()
        self.say("[bold]Type next[/bold]")
        milepost = escape(own_command())
        if kept is None:
            self.say(
                f"  {milepost} demo --keep        the same, and the folders stay; `milepost ui` shows them in a browser"
            )
            self.say(f"  {milepost} demo --tamper      post one thing twice behind Milepost's back: the demo must fail")
            self.say(f"  {milepost} map {escape(TARGET)}")
            return
        self.say(f"  cd {escape(shlex.quote(str(kept.folder)))}")
        for words, about in (
            ("ui                ", "all of it in a browser: the timeline with its five deaths, every effect"),
            ("runs              ", "the runs of this store"),
            (f"show {RUN}      ", "what was done, by which versions, and where it was interrupted"),
            (f"journal {RUN}   ", "every record, the five deaths and the lookups among them"),
            (f"verify {RUN}    ", "that nobody has changed any of it since"),
            (f"audit {RUN} --output month.html  ", "one page for somebody else, who can check it"),
        ):
            self.say(f"  {milepost} {words} {about}")


def own_command() -> str:
    """Return what runs this Milepost in the reader's shell: its name where a shell finds this one, else its path."""
    beside, found = Path(sys.executable).with_name("milepost"), shutil.which("milepost")
    if not beside.exists():
        return f"{shlex.quote(sys.executable)} -m milepost"
    return "milepost" if found is not None and Path(found).samefile(beside) else shlex.quote(str(beside))


# ── the table ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: whose books, what of them, and what each month has."""

    area: str
    what: str
    left: str
    right: str
    equal: bool


def _rows(left: Books, right: Books) -> list[Row]:
    return [
        _row("accounting queue", "accepted", _count(left.entries), _count(right.entries)),
        *_references(left, right),
        _row("", "digest of all", _digest(left.entries), _digest(right.entries)),
        _row("mail provider", "sent", _count(left.mails), _count(right.mails)),
        _row("", "digest of all", _digest(left.mails), _digest(right.mails)),
        _row("both", "duplicates", str(left.duplicate_count()), str(right.duplicate_count())),
        _calls(left.model_calls, right.model_calls),
        *_outputs(left, right),
        _row("", "report", left.journal.report_digest[:SHORT], right.journal.report_digest[:SHORT]),
    ]


def _row(area: str, what: str, left: str, right: str) -> Row:
    return Row(area, what, left, right, left == right)


def _calls(left: int, right: int) -> Row:
    more = f" (+{right - left}, died unrecorded)" if right > left else ""
    return Row("model", "calls", str(left), f"{right}{more}", left <= right <= left + DIED_UNRECORDED_MAX)


def _references(left: Books, right: Books) -> list[Row]:
    """Show the first key, the last, and each that was found by lookup; the line below them compares all."""
    recovered = {outcome.key for outcome in right.journal.recovered()} & right.entries.keys()
    keys = list(left.entries)
    shown = [key for key in keys if key in recovered or key in (*keys[:1], *keys[-1:])]
    return [_row("", f"{key[:SHORT]}…", _refs(left, key), _refs(right, key)) for key in shown]


def _refs(books: Books, key: str) -> str:
    return " ".join(ref for ref, _ in books.entries.get(key, ())) or "none"


def _outputs(left: Books, right: Books) -> list[Row]:
    mine, other = _by_step(left.journal.outputs()), _by_step(right.journal.outputs())
    names = [*mine, *(name for name in other if name not in mine)]
    areas = ["outputs", *[""] * len(names)]
    return [
        _row(area, name, mine.get(name, "none"), other.get(name, "none"))
        for area, name in zip(areas, names, strict=False)
    ]


def _by_step(outputs: Mapping[str, str]) -> dict[str, str]:
    """Sum up the outputs of each declared step: how many, and one digest over all of them by path."""
    grouped: dict[str, dict[str, str]] = {}
    for path in sorted(outputs):
        grouped.setdefault(path.partition("[")[0].partition("#")[0], {})[path] = outputs[path]
    return {name: f"{len(found)} · {_digest(found)}" for name, found in grouped.items()}


def _count(found: Mapping[str, Sequence[object]]) -> str:
    return str(sum(map(len, found.values())))


def _digest(found: Mapping[str, object]) -> str:
    return digest_of(json.dumps(found, sort_keys=True).encode())[:SHORT]

"""`python -m invoices.demo`, which `milepost demo` and `make demo` call: kill a month five times, compare, judge.

Exit status: 0 the two months are equal · 1 they differ, or a process did not die or live as it should · 130 and 143
interrupted. Children and services are stopped and folders removed on every way out, unless --keep.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from time import monotonic
from types import FrameType

from invoices.accounting import post_exception
from invoices.demo.books import Books, differences, read_books
from invoices.demo.journal import read_journal
from invoices.demo.places import DIED_UNRECORDED_MAX, Place, places_of
from invoices.demo.stage import RUN, ChildFailed, Stage, staged
from invoices.demo.summary import summary_of
from invoices.demo.telling import Teller
from invoices.world import WorldNotReady

INVOICES_MIN, INVOICES_MAX = 20, 200


def main(arguments: list[str] | None = None) -> int:
    """Run the demo and give its exit status."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _terminated)
    teller = Teller(to_stderr=options.json)
    try:
        with _folder(options.keep) as folder:
            return _demo(folder, options, teller)
    except KeyboardInterrupt:
        teller.say("Interrupted: children and services are stopped.")
        return 128 + signal.SIGINT
    except (ChildFailed, WorldNotReady) as failed:
        print(f"{failed.code}: {failed}\n{failed.hint}", file=sys.stderr)
        return 1


def _demo(folder: Path, options: argparse.Namespace, teller: Teller) -> int:
    teller.before(options.invoices, folder if options.keep else None)
    with ExitStack() as stages:
        first = stages.enter_context(staged("undisturbed", folder / "undisturbed", options.invoices))
        second = stages.enter_context(staged("killed", folder / "killed", options.invoices))
        undisturbed = _undisturbed(first, teller)
        _killed(second, places_of(undisturbed.journal), teller)
        if options.tamper:
            _tamper(second)
        killed = read_books(second)
    found = differences(undisturbed, killed, model_calls_more_max=DIED_UNRECORDED_MAX)
    teller.compared(undisturbed, killed)
    teller.saved(killed)
    teller.verdict(found)
    teller.next(second if options.keep else None)
    if options.json:
        print(json.dumps(summary_of(undisturbed, killed, found), indent=1))
    return 1 if found else 0


def _undisturbed(stage: Stage, teller: Teller) -> Books:
    seconds = _timed(stage.start)
    books = read_books(stage)
    teller.undisturbed(books, seconds)
    return books


def _killed(stage: Stage, places: list[Place], teller: Teller) -> None:
    """Kill the month at each place in turn, resume it after each, and once more to its end."""
    seconds = 0.0
    for number, place in enumerate(places, start=1):
        seconds += _timed(partial(stage.resume if number > 1 else stage.start, die_at=place.crash_at))
        journal = read_journal(stage.store, RUN)
        teller.killed(number, place, len(journal.verified), len(journal.applied))
    seconds += _timed(stage.resume)
    teller.resumed(seconds)


def _tamper(stage: Stage) -> None:
    """Post the first discrepancy once more, past Milepost, to a queue that forgets its keys."""
    entry = stage.world.ledger()["entries"][0]
    stage.world.behave(honours_keys=False)
    post_exception(stage.world.accounting_url, entry["key"], entry["exception"])


def _timed(act: Callable[[], None]) -> float:
    began = monotonic()
    act()
    return monotonic() - began


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Give a new folder: the one to keep, else a temporary one that is removed whatever happens."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=False)
        yield keep.resolve()
        return
    folder = Path(tempfile.mkdtemp(prefix="milepost-demo-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _terminated(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + signal.SIGTERM)


def _invoice_count(text: str) -> int:
    count = int(text)
    if not INVOICES_MIN <= count <= INVOICES_MAX:
        raise argparse.ArgumentTypeError(f"expected {INVOICES_MIN} to {INVOICES_MAX} mails, found {count}")
    return count


def _new_folder(text: str) -> Path:
    path = Path(text)
    if path.exists():
        raise argparse.ArgumentTypeError(f"expected a folder that does not exist yet, found {text}")
    return path


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="milepost demo", description="Kill a month of invoices five times; compare.")
    parser.add_argument("--invoices", type=_invoice_count, default=INVOICES_MAX, metavar="N", help="mails of the month")
    parser.add_argument(
        "--keep",
        type=_new_folder,
        nargs="?",
        const=Path("milepost-demo"),
        metavar="FOLDER",
        help="keep everything in this folder (default: milepost-demo)",
    )
    parser.add_argument("--tamper", action="store_true", help="post one thing twice behind Milepost's back: must fail")
    parser.add_argument("--json", action="store_true", help="print the result as JSON; the telling goes to stderr")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""The demo: five deaths at exact places, equal books, and a demo that would notice if they were not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from invoices.accounting import post_exception
from invoices.demo.books import Books, differences, read_books
from invoices.demo.journal import Journal, read_journal
from invoices.demo.places import Place, places_of
from invoices.demo.stage import RUN, ChildFailed, Stage, staged
from invoices.demo.telling import own_command

EXAMPLES = Path(__file__).parents[3] / "examples"
COUNT = 20
PLACES = 5


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Books]:
    with staged("undisturbed", tmp_path_factory.mktemp("demo") / "undisturbed", COUNT) as stage:
        stage.start()
        yield read_books(stage)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged("killed", tmp_path / "killed", COUNT) as stage:
        yield stage


def as_first(number: int, undisturbed: Books) -> str:
    """Give the n-th place as a crash point of a process that starts from the beginning."""
    journal = undisturbed.journal
    extracted, posts = len(journal.extracted()), len(journal.effects("post"))
    mails = len(journal.effects("notify"))
    return [
        places_of(journal)[0].crash_at,
        f"body before {1 + extracted + 1}",
        f"append:step_verified done {extracted + 1}",
        f"send durable {(posts + 1) // 2}",
        f"send before {posts + (mails + 1) // 2}",
    ][number]


@pytest.mark.parametrize("number", range(PLACES))
def test_month_killed_once_and_resumed_equals_the_undisturbed_one(
    number: int, stage: Stage, undisturbed: Books
) -> None:
    """Each place alone: whatever was lost with the process, the providers and the outputs must not show it."""
    stage.start(die_at=as_first(number, undisturbed))
    stage.resume()
    assert differences(undisturbed, read_books(stage), model_calls_more_max=1) == []


def test_places_are_passed_in_order_and_each_process_dies(stage: Stage, undisturbed: Books) -> None:
    """The demo's own schedule: one run, five deaths, each further on than the one before."""
    places = places_of(undisturbed.journal)
    stood: list[int] = []
    for number, place in enumerate(places):
        (stage.resume if number else stage.start)(die_at=place.crash_at)
        journal = read_journal(stage.store, RUN)
        stood.append(len(journal.verified) + len(journal.applied))
    stage.resume()
    assert stood == sorted(stood)
    assert read_journal(stage.store, RUN).resume_count == len(places) == PLACES


def test_accepted_and_unrecorded_call_is_found_not_sent_again(stage: Stage, undisturbed: Books) -> None:
    """Between the provider's accept and our record: the gap in which others send twice."""
    stage.start(die_at=as_first(3, undisturbed))
    stage.resume()
    assert len(read_journal(stage.store, RUN).recovered()) == 1
    assert set(stage.world.ledger()["sends"].values()) == {1}


def test_place_that_is_not_reached_fails_the_demo(stage: Stage) -> None:
    """A demo whose process did not die has shown nothing."""
    with pytest.raises(ChildFailed, match="expected to die at `send before 9999`, found exit status 0"):
        stage.start(die_at="send before 9999")


def test_duplicate_at_the_provider_is_a_difference(stage: Stage, undisturbed: Books) -> None:
    """The comparison looks at the provider, not at what the task says of itself."""
    stage.start()
    assert differences(undisturbed, read_books(stage), model_calls_more_max=0) == []
    entry = stage.world.ledger()["entries"][0]
    stage.world.behave(honours_keys=False)
    post_exception(stage.world.accounting_url, entry["key"], entry["exception"])
    found = differences(undisturbed, read_books(stage), model_calls_more_max=0)
    assert any("1 duplicates" in line for line in found)
    assert any(entry["key"] in line for line in found)


def test_lost_mail_is_a_difference(stage: Stage, undisturbed: Books) -> None:
    """Nothing left out is the other half of the promise."""
    stage.start()
    next((stage.world.sent / "new").iterdir()).unlink()
    found = differences(undisturbed, read_books(stage), model_calls_more_max=0)
    assert [line.partition(" <")[0] for line in found] == ["sent mail"]


def test_places_need_no_model_call() -> None:
    """A month without a PDF for the model still has a middle."""
    assert all(isinstance(place, Place) for place in places_of(Journal()))


# ── as a program ────────────────────────────────────────────────────────────────────────────────────


def demo(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the demo as a reader does."""
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES), "INVOICES_SETTLE_S": "0.2", "TMPDIR": str(cwd)}
    command = [sys.executable, "-m", "invoices.demo", "--invoices", str(COUNT), *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=200)


def test_demo_ends_equal_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """What a stranger types first: exit status 0, both ledgers in print, no folder left."""
    done = demo(cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Equal." in done.stdout
    assert "≠" not in done.stdout
    assert "local service" in done.stdout
    assert done.stdout.count("✗") == PLACES
    assert list(tmp_path.iterdir()) == []


def test_kept_demo_can_be_looked_at_with_the_commands_it_names(tmp_path: Path) -> None:
    """The way on from the demo has to work as printed."""
    done = demo("--keep", "kept", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"cd {tmp_path / 'kept' / 'killed'}" in done.stdout
    assert "milepost ui" in done.stdout
    for command in (["runs"], ["show", RUN], ["audit", RUN, "--output", "month.html", "--json"]):
        shown = subprocess.run(
            [sys.executable, "-m", "milepost", *command],
            cwd=tmp_path / "kept" / "killed",
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert shown.returncode == 0, shown.stderr
        assert RUN in shown.stdout


def test_json_holds_both_ledgers_and_the_verdict(tmp_path: Path) -> None:
    """The same comparison for a program: nothing but one JSON object on stdout."""
    done = demo("--json", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert told["equal"] is True
    assert told["undisturbed"]["entries"] == told["killed"]["entries"] != {}
    assert told["undisturbed"]["outputs"] == told["killed"]["outputs"]
    assert told["killed"]["resume_count"] == PLACES
    assert told["saved"]["step_count"] > 0


def test_tampered_demo_exits_1(tmp_path: Path) -> None:
    """A demo that cannot fail proves nothing."""
    done = demo("--tamper", cwd=tmp_path)
    assert done.returncode == 1
    assert "Different:" in done.stdout
    assert "1 duplicates" in done.stdout


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_demo_stops_everything_it_started(number: signal.Signals, status: int, tmp_path: Path) -> None:
    """Ctrl-C in the middle: no service, child or folder outlives it."""
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES), "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "invoices.demo", "--invoices", str(COUNT)]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if "Undisturbed" in line:
                break
        running.send_signal(number)
        running.communicate(timeout=60)
    assert running.returncode == status
    assert list(tmp_path.iterdir()) == []
    assert not [found for found in _commands() if str(tmp_path) in found]


def _commands() -> list[str]:
    """Give the command lines of all processes that can be seen."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(process.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:  # it ended meanwhile
            continue
    return found


def test_what_to_type_next_works_where_no_shell_finds_milepost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make demo` in a fresh clone: the program lies in .venv/bin, and nobody has activated that."""
    beside = tmp_path / "bin dir" / "milepost"
    beside.parent.mkdir()
    monkeypatch.setattr(sys, "executable", str(beside.with_name("python")))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert own_command() == f"'{beside.with_name('python')}' -m milepost"
    beside.touch(mode=0o755)
    assert own_command() == f"'{beside}'"
    monkeypatch.setenv("PATH", str(beside.parent))
    assert own_command() == "milepost"
    (tmp_path / "milepost").touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{beside.parent}")
    assert own_command() == f"'{beside}'", "what the shell finds is another one"

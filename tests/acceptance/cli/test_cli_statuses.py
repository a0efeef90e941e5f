"""Each exit status has one meaning, and no foreseen error shows a traceback of ours."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cli_shell import RUN, Ended, Shell

from milepost.stores.contract import Holder, NewRun
from milepost.stores.sqlite.store import SqliteStore

AT = "2026-11-02T09:00:00.000000+00:00"


def no_traceback(ended: Ended) -> bool:
    return "Traceback" not in ended.err + ended.out


def test_done_is_0_with_nothing_but_the_result_on_stdout(shell: Shell) -> None:
    """What the plan prints and all progress goes to stderr: stdout can be piped."""
    ended = shell.run(*RUN)
    assert (ended.status, ended.out) == (0, "2\n")
    assert "written to stdout by the plan" in ended.err
    assert "post[ann]: applied" in ended.err
    again = shell.run(*RUN)
    assert (again.status, again.out) == (0, "2\n")
    assert (shell.folder / "posted.txt").read_text().split() in (["ann", "bob"], ["bob", "ann"])


def test_done_as_json_tells_run_status_and_result(shell: Shell) -> None:
    """A program reads the result without knowing the task."""
    ended = shell.run(*RUN, "--json")
    assert ended.json == {"run_id": "one", "task": "letters", "status": "done", "result": 2}
    resumed = shell.run("resume", "one", "--json")
    assert resumed.json == {"run_id": "one", "task": "letters", "status": "done", "result": 2}


def test_failed_is_1_with_the_users_own_traceback_only(shell: Shell) -> None:
    """The user sees their exception and their frames; ours are noise to them."""
    ended = shell.run(*RUN, FAIL_PLAN="1")
    assert ended.status == 1
    assert "RuntimeError: the plan went wrong" in ended.err
    assert "letters.py" in ended.err
    assert "/milepost/" not in ended.err
    assert "step-failed" in ended.err
    assert shell.run("resume", "one").status == 0


@pytest.mark.parametrize(
    ("plan", "way", "status", "code"),
    [
        ("leaving", "exit", 1, "step-failed"),
        ("leaving", "interrupt", 130, "run-interrupted"),
        ("leaving", "cancel", 1, "step-failed"),
        ("leaving_task", "exit", 1, "step-failed"),
    ],
)
def test_no_way_out_of_a_plan_looks_like_success(shell: Shell, plan: str, way: str, status: int, code: str) -> None:
    """`sys.exit(0)` in a library a step calls made scripts go on as if the run were done."""
    ended = shell.run("run", f"letters.py:{plan}", f"way={way}", "--run-id", "one")
    assert (ended.status, ended.out) == (status, "")
    assert f"\n{code}: run one" in ended.err
    assert "/milepost/" not in ended.err
    assert shell.run("runs", "--json").json["runs"][0]["status"] == "failed"


def test_an_output_that_is_no_data_says_how_to_mend_it(shell: Shell) -> None:
    """The step failed by an error of ours: its hint helps, a traceback of ours would not."""
    ended = shell.run("run", "letters.py:unwritable", "name=ann", "--run-id", "one")
    assert (ended.status, ended.err.count("step-failed: ")) == (1, 1)
    assert "$[1]" in ended.err
    assert "Annotate it as what it is" in ended.err
    assert "`milepost resume one`" in ended.err
    assert no_traceback(ended)
    again = shell.run("resume", "one", "--json")
    assert again.json["error"]["hint"].startswith("Annotate it as what it is")


def test_a_failed_run_says_which_step_and_what_it_raised(shell: Shell) -> None:
    """Not the name of our class around it, and not the run again."""
    shell.run("run", "letters.py:unwritable", "name=ann", "--run-id", "one")
    assert "unwritten: milepost.errors.NotEncodable: " in shell.run("runs", "--json").json["runs"][0]["detail"]
    for shown in (shell.run("show", "one").out, shell.run("journal", "one").out):
        assert "failed at unwritten: milepost.errors.NotEncodable: " in shown
        assert "StepFailed" not in shown


def test_a_run_that_died_before_its_first_record_is_started_again(shell: Shell) -> None:
    """There is a run of this id, but not even its inputs are kept: *unknown* would be a lie."""
    (shell.folder / ".milepost").mkdir()
    with closing(SqliteStore(shell.folder / ".milepost" / "store.sqlite", create=True)) as store:
        holder = Holder("here", "boot", 1, AT)
        lease = store.create_run(NewRun("one", "letters", "one", None, AT, holder))
        assert lease is not None
        store.release(lease)
    for words in (("resume", "one"), ("resume", "one", "--check"), ("fork", "one", "--from", "write")):
        ended = shell.run(*words)
        assert (ended.status, ended.err.partition(":")[0]) == (3, "run-unstarted")
        assert "--run-id one" in ended.err
        assert no_traceback(ended)
    assert shell.run("show", "one").status == 0
    assert shell.run(*RUN).out == "2\n"


def test_failed_as_json_is_an_object_with_code_message_and_hint(shell: Shell) -> None:
    """The error can be told apart by its code; the run it is about stands beside it."""
    ended = shell.run(*RUN, "--json", FAIL_PLAN="1")
    found = ended.json
    assert (ended.status, found["run_id"], found["status"]) == (1, "one", "failed")
    assert found["error"]["code"] == "step-failed"
    assert "milepost resume one" in found["error"]["hint"]
    assert found["error"]["facts"]["error"] == "RuntimeError: the plan went wrong"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("run", "letters.py:nobody"), "unknown-task", "its tasks are: letters, mute, hostile, gates"),
        (("run", "letters.py:write"), "unknown-task", "'write' is no task but Step"),
        (("run", "letters.py"), "unknown-task", "does not say which task"),
        (("run", "nowhere.py:x"), "unknown-task", "there is no file nowhere.py"),
        (("run", "no.such.module:x"), "unknown-task", "there is no module 'no'"),
        (("run", "."), "unknown-task", "it is a folder"),
        (("run", "..:x"), "unknown-task", "it is a folder"),
        (("run", ":x"), "unknown-task", "it names no module"),
        (("run", "x" * 300 + ".py"), "unknown-task", "File name too long"),
        (("run", "letters.py:letters"), "bad-input", "input names: it is missing; expected names=list[str]"),
        (("run", "letters.py:letters", "names=5"), "bad-input", "expected list[str], found '5'"),
        (
            ("run", "letters.py:letters", "names=[]", "x=1"),
            "bad-input",
            "its inputs are: names (list[str]), shouted (str)",
        ),
        (("run", "letters.py:letters", "names=[]", "names=[]"), "bad-input", "given twice"),
        (("run", "letters.py:letters", "names"), "bad-input", "expected name=value"),
        (("run", "letters.py:letters", "names=[]", "--run-id", "a\nb"), "bad-name", "unprintable"),
        (("run", "letters.py:letters", "names=[]", "--run-id", "../up"), "bad-name", "starts with '.'"),
        (("run", "letters.py:letters", "names=[]", "--run-id", "x" * 300), "bad-name", "300 characters"),
    ],
)
def test_misuse_is_2_and_says_what_to_write_instead(shell: Shell, words: tuple[str, ...], code: str, says: str) -> None:
    """Nothing ran, no store was made, and the message names what was expected and what was found."""
    ended = shell.run(*words)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith(f"{code}: ")
    assert says in ended.err
    assert no_traceback(ended)
    assert not (shell.folder / ".milepost").exists()


def test_no_command_at_all_gets_the_help(shell: Shell) -> None:
    """Whoever types the name alone wants to know what there is, to be read and not escaped."""
    ended = shell.run()
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.splitlines()[0] == "Usage: milepost [OPTIONS] COMMAND [ARGS]..."
    assert "\n  resume      Go on with a run where it stood" in ended.err
    assert shell.run("completion").err.splitlines()[0].endswith("Choose from: bash, zsh, fish")


@pytest.mark.parametrize("words", [("run",), ("fly",), ("show", "--nope", "x"), ("answer", "q-1")])
def test_a_command_line_that_cannot_be_read_is_2(shell: Shell, words: tuple[str, ...]) -> None:
    """click's own usage errors keep the shape of ours, as text and as JSON."""
    ended = shell.run(*words)
    assert ended.status == 2
    assert ended.err.startswith("usage: ")
    assert shell.run(*words, "--json").json["error"]["code"] == "usage"


def test_an_error_inside_the_users_file_is_2_with_file_line_and_traceback(shell: Shell) -> None:
    """The one misuse where a traceback helps: it is the user's."""
    (shell.folder / "broken.py").write_text("import os\n\nos.environ['NOT_THERE']\n")
    ended = shell.run("run", "broken.py:x")
    assert ended.status == 2
    assert "broken.py, line 3: KeyError: 'NOT_THERE'" in ended.err
    assert "/milepost/" not in ended.err
    (shell.folder / "half.py").write_text("def x(:\n")
    assert "half.py, line 1: SyntaxError" in shell.run("run", "half.py:x").err


def test_a_store_that_is_not_there_is_3_and_is_not_made(shell: Shell) -> None:
    """Inspecting and resuming never create a store."""
    for words in (("runs",), ("resume",), ("show", "x"), ("inbox",), ("doctor",)):
        ended = shell.run(*words)
        assert ended.status == 3
        assert ended.err.startswith("store-missing: ")
    assert not (shell.folder / ".milepost").exists()


def test_an_unknown_run_question_or_step_is_3(shell: Shell) -> None:
    """Each names what was asked for and where to look."""
    shell.run(*RUN)
    for words, code in (
        (("show", "two"), "run-unknown"),
        (("show", "one", "--step", "nope"), "step-unknown"),
        (("inbox", "q-nope"), "question-unknown"),
        (("answer", "q-nope", "keep"), "question-unknown"),
        (("cancel", "one"), "run-ended"),
    ):
        ended = shell.run(*words)
        assert (ended.status, ended.err.partition(":")[0]) == (3, code)


def test_other_inputs_under_a_known_id_are_refused_with_3(shell: Shell) -> None:
    """The difference is named; nothing ran."""
    shell.run(*RUN)
    ended = shell.run("run", "letters.py:letters", 'names=["eve"]', "--run-id", "one")
    assert ended.status == 3
    assert '$.names[0]: "ann" → "eve"' in ended.err


def test_a_foreign_database_and_a_newer_store_are_refused_with_3_unchanged(shell: Shell) -> None:
    """Milepost never writes into a file that is not its own, nor into one it does not understand."""
    foreign = shell.folder / "foreign.sqlite"
    with closing(sqlite3.connect(foreign)) as connection, connection:
        connection.execute("create table orders (id)")
    connection.close()
    before = foreign.read_bytes()
    ended = shell.run(*RUN, MILEPOST_STORE=str(foreign))
    assert (ended.status, ended.err.partition(":")[0]) == (3, "foreign-database")
    assert foreign.read_bytes() == before
    shell.run(*RUN)
    newer = shell.folder / ".milepost" / "store.sqlite"
    with closing(sqlite3.connect(newer)) as connection, connection:
        connection.execute("insert into migrations (number, name) values (999, 'later')")
    connection.close()
    ended = shell.run("runs", "--json")
    assert (ended.status, ended.json["error"]["code"]) == (3, "store-too-new")


def test_a_missing_seal_key_is_3_and_the_right_one_goes_on(shell: Shell) -> None:
    """Cannot-tell is not corrupt: the message names the key that is needed, never its value."""
    shell.run(*RUN, MILEPOST_SEAL_KEY="very secret, long enough", FAIL_PLAN="1")
    ended = shell.run("resume", "one")
    assert (ended.status, ended.err.partition(":")[0]) == (3, "seal-key-missing")
    assert "very secret" not in ended.err
    checked = shell.run("resume", "one", "--check", "--json")
    states = [(finding["state"], finding["found"].partition(":")[0]) for finding in checked.json["findings"][1:]]
    assert (checked.status, states) == (3, [("wait", "not looked at")] * 5), "nothing was read that could be ok"
    for key, is_well in (("", False), ("another secret, long enough", False), ("very secret, long enough", True)):
        told = shell.run("doctor", "--json", **({"MILEPOST_SEAL_KEY": key} if key else {}))
        assert next(f["ok"] for f in told.json["findings"] if f["check"] == "seal key") is is_well
    assert shell.run("resume", "one", MILEPOST_SEAL_KEY="very secret, long enough").status == 0


def test_a_seal_key_that_could_be_guessed_is_refused_and_doctor_says_so(shell: Shell) -> None:
    """A key of three characters seals nothing: who has a fingerprint tries them all."""
    ended = shell.run(*RUN, MILEPOST_SEAL_KEY="abc")
    assert (ended.status, "bad-option: MILEPOST_SEAL_KEY: " in ended.err) == (2, True)
    assert "at least 16 bytes, this one 3" in ended.err
    assert "secrets.token_hex(32)" in ended.err
    assert not (shell.folder / ".milepost").exists()
    shell.run(*RUN)
    told = shell.run("doctor", "--json", MILEPOST_SEAL_KEY="abc")
    finding = next(f for f in told.json["findings"] if f["check"] == "seal key")
    assert (told.status, finding["ok"]) == (3, False)
    assert "secrets.token_hex(32)" in finding["hint"]


STOPPING = """
import asyncio
from milepost import step, task

@step
async def one() -> int:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)
    return 1

@task
async def plan() -> int:
    return await one()
"""


def test_a_plan_that_stops_its_loop_is_told_so(shell: Shell) -> None:
    """It is the plan's doing and no bug of ours; what was recorded stands."""
    (shell.folder / "stopping.py").write_text(STOPPING, encoding="utf-8")
    ended = shell.run("run", "stopping.py:plan", "--run-id", "stops")
    assert ended.status == 2
    assert "loop-stopped: run stops: " in ended.err
    assert "Do not call loop.stop()" in ended.err
    assert shell.run("show", "stops", "--json").json["status"] == "failed"


def test_a_question_is_4_and_its_answer_lets_the_run_go_on(shell: Shell) -> None:
    """Killed between the send and its record, a provider that cannot be asked: a person decides."""
    assert shell.run(*RUN, DIE_SHOUTING="1").status == -9
    asked = shell.run("resume", "one")
    assert (asked.status, asked.err.splitlines()[-2].partition(":")[0]) == (4, "outcome-unknown")
    question = shell.question()
    assert shell.run("resume", "one").status == 4
    answered = shell.run("answer", question, "applied", "--ref", "R-1", "--result", '"DONE"', "--note", "saw it")
    assert answered.status == 0
    assert "milepost resume one" in answered.err
    late = shell.run("answer", question, "stop", "--json")
    assert (late.status, late.json["error"]["code"]) == (3, "already-answered")
    assert shell.run("resume", "one").status == 0


def test_a_wait_is_5_with_no_wait(shell: Shell) -> None:
    """A cron job leaves instead of sleeping for an hour; the time is recorded, not started anew."""
    ended = shell.run(*RUN, "--no-wait", "--json", BUSY="1")
    found = ended.json
    assert (ended.status, found["status"], found["error"]["code"]) == (5, "waiting", "run-waiting")
    again = shell.run("resume", "one", "--no-wait", "--json", BUSY="1")
    assert again.json["error"]["facts"]["until"] == found["error"]["facts"]["until"]
    assert "waits until" in shell.run("show", "one").out


def test_a_store_that_cannot_be_made_is_6(shell: Shell) -> None:
    """Something outside is away: the message names the file and the operation."""
    ended = shell.run(*RUN, MILEPOST_STORE="/proc/nowhere/store.sqlite")
    assert (ended.status, ended.err.partition(":")[0]) == (6, "store-unavailable")
    assert no_traceback(ended)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write into a read-only folder")
def test_a_read_only_folder_is_6_and_nothing_ran(shell: Shell) -> None:
    """The folder that is not writable is named."""
    shell.folder.chmod(0o500)
    ended = shell.run(*RUN)
    shell.folder.chmod(0o700)
    assert (ended.status, ended.err.partition(":")[0]) == (6, "store-unavailable")
    assert not (shell.folder / "posted.txt").exists()


def test_a_reader_that_goes_away_is_quiet(shell: Shell) -> None:
    """`milepost journal RUN | head` says nothing about a broken pipe."""
    shell.run(*RUN)
    process = shell.start("journal", "one")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), error) == (141, "")


def test_the_statuses_are_in_the_help(shell: Shell) -> None:
    """Whoever writes a script finds them where they look first."""
    said = shell.run("--help").out
    for meaning in ("0 done", "1 failed", "2 misuse", "3 refused", "4 waits for a person", "5 waits for a time"):
        assert meaning in said
    assert Path(shell.folder, ".milepost").exists() is False

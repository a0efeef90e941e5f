"""`resume --check` prints the six rules and changes nothing; what it says is what a resume then does."""

from __future__ import annotations

import sqlite3

from cli_shell import RUN, Shell


def contents(shell: Shell) -> tuple[list[str], bytes, set[str]]:
    """Return everything a store holds: its rows as SQL, the bytes of its file, the files around it."""
    store = shell.folder / ".milepost" / "store.sqlite"
    connection = sqlite3.connect(store)
    dump = list(connection.iterdump())
    connection.close()
    return (
        dump,
        store.read_bytes(),
        {str(path) for path in store.parent.rglob("*") if path.name[-4:] not in ("-wal", "-shm")},
    )


def test_check_prints_six_rules_and_changes_nothing(shell: Shell) -> None:
    """No lease, no record, no lookup: the store's rows, bytes and files are the same afterwards."""
    shell.run(*RUN, DIE_SHOUTING="1")
    before = contents(shell)
    ended = shell.run("resume", "one", "--check")
    rules = [line.split()[1] for line in ended.out.splitlines()[1:]]
    assert rules == ["Trust", "Sources", "Intents", "Versions", "Continue", "Bound"]
    assert "shout[done]" in ended.out
    assert contents(shell) == before
    assert (shell.folder / "posted.txt").read_text().split() in (["ann", "bob"], ["bob", "ann"])


def test_check_says_ask_with_4_when_a_resume_would_ask(shell: Shell) -> None:
    """The status is the one the resume then ends with."""
    shell.run(*RUN, DIE_SHOUTING="1")
    found = shell.run("resume", "one", "--check", "--json")
    assert found.status == 4
    assert [f["state"] for f in found.json["findings"]] == ["ok", "ok", "ask", "ok", "ask", "ok"]
    assert "would ask: nobody can look it up: shout[done]" in found.json["findings"][2]["found"]
    assert shell.run("resume", "one").status == 4


def test_check_of_a_run_that_would_go_on_is_0_and_names_what_is_next(shell: Shell) -> None:
    """What the plan prints while it is replayed does not get into the JSON."""
    shell.run(*RUN, FAIL_PLAN="1")
    found = shell.run("resume", "one", "--check", "--json")
    assert found.status == 0
    assert "count" in found.json["findings"][4]["found"]


def test_check_of_an_altered_run_is_3(shell: Shell) -> None:
    """Rule 1 names the record; nothing else is said to be fine."""
    shell.run(*RUN, FAIL_PLAN="1")
    connection = sqlite3.connect(shell.folder / ".milepost" / "store.sqlite")
    with connection:
        connection.execute("update journal set seal = zeroblob(32) where seq = 3")
    connection.close()
    found = shell.run("resume", "one", "--check", "--json")
    assert found.status == 3
    assert found.json["findings"][0]["state"] == "refuse"


def test_resume_works_in_the_folder_the_run_was_started_in(shell: Shell) -> None:
    """The plan's relative paths mean the same after a reboot, from wherever `resume` is typed."""
    shell.run(*RUN, FAIL_PLAN="1")
    below = shell.folder / "deep" / "er"
    below.mkdir(parents=True)
    there = Shell(below, shell.environ)
    assert there.run("resume", "one").out == "2\n"
    assert not (below / "posted.txt").exists()


def test_resume_without_a_run_takes_the_only_one_or_lists_them(shell: Shell) -> None:
    """One unfinished run needs no name; among several nobody guesses."""
    shell.run(*RUN, FAIL_PLAN="1")
    shell.run("run", "letters.py:letters", 'names=["eve"]', "--run-id", "two", FAIL_PLAN="1")
    many = shell.run("resume")
    assert many.status == 2
    assert "one (failed), two (failed)" in many.err
    assert shell.run("resume", "two").status == 0
    assert shell.run("resume").status == 0
    nothing = shell.run("resume")
    assert (nothing.status, nothing.out) == (0, "")
    assert "Nothing to resume" in nothing.err


def test_resume_all_goes_on_with_what_died_is_answered_or_due_and_leaves_the_rest(shell: Shell) -> None:
    """A failed run needs a person to mend something first; one that asks needs an answer."""
    shell.run(*RUN, FAIL_PLAN="1")
    shell.run("run", "letters.py:letters", 'names=["eve"]', "--run-id", "two", DIE_SHOUTING="1")
    first = shell.run("resume", "--all", "--json")
    assert (first.status, [run["status"] for run in first.json["runs"]]) == (4, ["asking"])
    assert shell.run("resume", "--all", "--json").json == {"runs": []}
    shell.run("answer", shell.question(), "not-applied")
    second = shell.run("resume", "--all", "--json")
    assert (second.status, [run["status"] for run in second.json["runs"]]) == (0, ["done"])


def test_a_fork_keeps_what_was_applied_and_posts_nothing_twice(shell: Shell) -> None:
    """The old run has ended; the new one goes on from before the step."""
    shell.run(*RUN)
    forked = shell.run("fork", "one", "--from", "count", "--run-id", "two", "--json")
    assert (forked.status, forked.json["applied_count"]) == (0, 3)
    assert shell.run("resume", "two").out == "2\n"
    assert len((shell.folder / "posted.txt").read_text().split()) == 2
    assert shell.run("fork", "one", "--from", "nope").status == 3


def test_a_forked_run_names_the_newest_of_its_family(shell: Shell) -> None:
    """A second fork of it would send again what the first has sent."""
    shell.run(*RUN, FAIL_PLAN="1")
    assert shell.run("fork", "one", "--from", "write", "--run-id", "two").status == 0
    again = shell.run("fork", "one", "--from", "write", "--run-id", "three")
    assert again.status == 3
    assert "already-forked: run one was forked before: the newest run of its family is two" in again.err
    assert "`milepost fork two --from STEP`" in again.err
    assert (
        shell.run("show", "one")
        .out.rstrip()
        .endswith("type: milepost fork two --from STEP   (one was forked before: two is the newest of its family)")
    )


def test_prune_deletes_ended_runs_only_when_told_to(shell: Shell) -> None:
    """It asks; without a person to ask it needs --yes; a run that can go on is not pruned."""
    shell.run(*RUN)
    shell.run("run", "letters.py:letters", 'names=["eve"]', "--run-id", "two", FAIL_PLAN="1")
    assert shell.run("prune", "two", "--yes").status == 2
    assert shell.run("prune").status == 2
    assert shell.run("prune", "one", "--json").status == 2
    unasked = shell.run("prune", "one")
    assert (unasked.status, "nobody can be asked" in unasked.err, "--yes" in unasked.err) == (2, True, True)
    refused = shell.run("prune", "--older-than", "6m", "--yes")
    assert (refused.status, '"m" alone may be minutes or months' in refused.err) == (2, True)
    assert shell.run("prune", "--older-than", "30d", "--yes", "--json").json["pruned"] == 0
    assert shell.run("prune", "one", "--yes", "--json").json == {"pruned": 1, "runs": ["one"]}
    assert [run["run_id"] for run in shell.run("runs", "--json").json["runs"]] == ["two"]

"""The hint under an error is about this error, and can be followed; what user code says never passes for ours."""

from __future__ import annotations

import importlib.util

import pytest
from cli_shell import Shell

from milepost.cli import demo
from milepost.errors import MisuseError

PLANS = {
    "syntax.py": "def broken(:\n",
    "missing.py": "import a_module_nobody_has\n",
    "forger.py": (
        "from milepost import task\n\n@task\ndef forger() -> None:\n"
        "    raise RuntimeError('a\\r\\nmilepost: run is done')\n"
    ),
    "keyed.py": (
        "from milepost import step, task\n\n@step(key=lambda n: [n])\ndef one(n: int) -> int:\n    return n\n\n"
        "@task\ndef keyed() -> int:\n    return one(1)\n"
    ),
    "reader.py": (
        "from milepost import step, task\n\n@step\ndef read(name: str) -> str:\n    return open(name).read()\n\n"
        "@task\ndef reader(name: str) -> str:\n    return read(name)\n"
    ),
}


@pytest.fixture
def written(shell: Shell) -> Shell:
    for name, text in PLANS.items():
        (shell.folder / name).write_text(text, encoding="utf-8")
    return shell


@pytest.mark.parametrize(
    ("target", "hint"),
    [("syntax.py", "Mend the file"), ("missing.py", "Install 'a_module_nobody_has'"), ("absent.py", "Name it FILE.py")],
)
def test_a_task_that_cannot_be_imported_says_what_to_mend(written: Shell, target: str, hint: str) -> None:
    """Its name is right; the file is not."""
    ended = written.run("run", target)
    assert ended.status == 2
    assert ended.err.splitlines()[-1].startswith(f"  → {hint}")


def test_a_taken_id_is_no_malformed_one(written: Shell) -> None:
    """The rules for names are not what is wrong."""
    written.run("run", "letters.py:letters", 'names=["ann"]', "--run-id", "one")
    ended = written.run("fork", "one", "--from", "count", "--run-id", "one")
    assert ended.status == 2
    assert ended.err.splitlines()[-1] == "  → Choose another id for the new run."


def test_a_key_of_another_type_is_no_malformed_name(written: Shell) -> None:
    """What is wrong is what the function returns."""
    ended = written.run("run", "keyed.py")
    assert "expected a str or an int" in ended.err
    assert "return a str or an int" in ended.err.splitlines()[-1]


def test_the_id_of_a_pruned_run_says_that_it_stays_taken(written: Shell) -> None:
    """That there is no such run is half of the truth."""
    run = ("run", "letters.py:quiet", "--run-id", "one")
    written.run(*run)
    assert written.run("prune", "one", "--yes").status == 0
    ended = written.run(*run)
    assert ended.status == 3
    assert "run-ended: run one has ended: pruned" in ended.err
    assert "Choose another run id" in ended.err
    for words in (("show", "one"), ("resume", "one"), ("cancel", "one"), ("prune", "one", "--yes")):
        named = written.run(*words)
        assert (named.status, "run-ended: run one has ended: pruned" in named.err) == (3, True), words


def test_a_run_is_found_by_its_id_in_either_unicode_form(written: Shell) -> None:
    """It is recorded in one form; some keyboards and file systems give the other, which looks the same."""
    typed = "cafe\N{COMBINING ACUTE ACCENT}"
    assert written.run("run", "letters.py:quiet", "--run-id", typed).status == 0
    shown = written.run("show", typed, "--json")
    assert (shown.status, shown.json["run_id"]) == (0, "caf\N{LATIN SMALL LETTER E WITH ACUTE}")
    assert written.run("resume", typed).status == 0


def test_no_line_of_an_error_s_text_stands_like_one_of_ours(written: Shell) -> None:
    """A text with line breaks in it could say that the run is done."""
    said = written.run("run", "forger.py").err
    assert "milepost: run is done" in said
    assert not any(line.startswith("milepost: run is done") for line in said.splitlines())


def test_a_drill_that_cannot_start_says_so_in_a_line_and_names_setup(written: Shell) -> None:
    """A relative file is not there in the empty folder of a drill."""
    (written.folder / "here.txt").write_text("text", encoding="utf-8")
    ended = written.run("drill", "reader.py", "name=here.txt")
    assert ended.status == 2
    told, hint = ended.err.splitlines()[-2:]
    assert told.startswith("misuse: the undisturbed run in an empty folder did not end: ")
    assert "No such file or directory: 'here.txt'" in told
    assert "--setup MODULE:FUNCTION" in hint


def test_the_demo_names_an_install_that_works_without_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Milepost is on no package index: a clone is where the extra comes from."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MisuseError, match="the demo needs aiosmtpd") as raised:
        demo._refuse_missing()
    assert "[examples]" in raised.value.hint
    assert "'milepost[examples]'" not in raised.value.hint


def test_one_long_run_id_does_not_widen_every_line(shell: Shell) -> None:
    """Three hundred columns are read by nobody."""
    shell.run("run", "letters.py:quiet", "--run-id", "x" * 200)
    shell.run("run", "letters.py:quiet", "--run-id", "short")
    lines = shell.run("runs").out.splitlines()
    assert max(len(line) for line in lines if not line.startswith("xxx")) < 150
    assert any(line.startswith("x" * 200) for line in lines)


def test_a_task_that_was_renamed_is_named_with_its_run(written: Shell) -> None:
    """Each refusal says the next step, and the last one goes on; a check is refused like its resume."""
    plan = written.folder / "renamed.py"
    plan.write_text("from milepost import task\n@task\ndef old() -> int:\n    raise LookupError\n", encoding="utf-8")
    assert written.run("run", "renamed.py:old", "--run-id", "one").status == 1
    plan.write_text("from milepost import task\n@task\ndef new() -> int:\n    return 1\n", encoding="utf-8")
    gone = written.run("resume", "one")
    assert gone.status == 2
    assert '`milepost resume one --task FILE.py:FUNCTION`, where FUNCTION is declared as @task(name="old")' in gone.err
    for words in (("--check",), ()):
        other = written.run("resume", "one", "--task", "renamed.py:new", *words)
        assert (other.status, "@task(name=…)" in other.err) == (3, True)
    plan.write_text(plan.read_text().replace("@task", '@task(name="old")'), encoding="utf-8")
    assert written.run("resume", "one", "--task", "renamed.py:new").status == 0

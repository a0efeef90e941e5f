"""What writes durably says what a crash leaves; what loads never executes; tests do not sleep or pretend."""

from __future__ import annotations

import ast
import re

from source_tree import ROOT, calls, functions, python_files, shown

WRITES = re.compile(
    r"\bos\.(p?write|rename|replace|link|fsync)\(|\.transaction\(|\bjournal\.append\(|\bstore\.(append|create_run|claim|answer"
    r"|cancel|prune)\(|\byield Append\(|['\"]COMMIT['\"]"
)
EXECUTES = re.compile(r"\b(pickle|marshal|shelve|dill|cloudpickle)\b|(?<![.\w])(eval|exec)\(")
SLEEPS = frozenset(["time.sleep", "asyncio.sleep", "anyio.sleep"])
PRETENDS = re.compile(r"\bunittest\.mock\b|\bMagicMock\b|\bmocker\b")


def test_what_writes_durably_says_what_a_crash_leaves() -> None:
    """If one cannot write the `Crash:` line, the function is not finished.

    Checked for public functions (private ones are part of one) that write themselves.
    """
    rooms = [f"src/milepost/{room}" for room in ("stores", "artifacts", "runtime")]
    found = [f for path in python_files(*rooms) for f in functions(path) if WRITES.search(f.code)]
    public = [f for f in found if not any(part.startswith("_") for part in f.name.split("."))]
    assert len(public) > 10
    assert [f"{f.file} {f.name}" for f in public if "Crash:" not in f.doc] == []


def test_nothing_that_loads_executes() -> None:
    """A record is data. Who can write to a store must not be able to run code through it."""
    texts = {shown(path): path.read_text(encoding="utf-8") for path in python_files("src")}
    code = {name: re.sub(r'""".*?"""|#[^\n]*', "", text, flags=re.DOTALL) for name, text in texts.items()}
    assert [name for name, text in code.items() if EXECUTES.search(text)] == []


def test_no_test_sleeps() -> None:
    """A test that sleeps is slow on one machine and wrong on another; clocks and barriers are passed in."""
    sleeping = {
        shown(path): [ast.unparse(call) for call in calls(path) if _sleeps(call)] for path in python_files("tests")
    }
    assert {name: found for name, found in sleeping.items() if found} == {}
    hidden = re.compile(r"from (time|asyncio) import .*\bsleep\b")
    assert [name for name in sleeping if hidden.search((ROOT / name).read_text(encoding="utf-8"))] == []


def _sleeps(call: ast.Call) -> bool:
    is_nothing = len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
    return ast.unparse(call.func) in SLEEPS and not is_nothing


def test_no_test_pretends_to_be_what_we_claim_to_work_with() -> None:
    """SQLite, the file system, processes and signals are the real ones."""
    found = [shown(p) for p in python_files("tests") if PRETENDS.search(p.read_text(encoding="utf-8"))]
    assert [name for name in found if not name.startswith("tests/house/")] == []

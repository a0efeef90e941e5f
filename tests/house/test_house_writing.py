"""What writes durably says what a crash leaves; what loads never executes; tests do not sleep or pretend."""

from __future__ import annotations

import re

from source_tree import functions, python_files, shown

WRITES = re.compile(
    r"\bos\.(p?write|rename|replace|link|fsync)\(|\.transaction\(|\bjournal\.append\(|\bstore\.(append|create_run|claim|answer"
    r"|cancel|prune)\(|\byield Append\(|['\"]COMMIT['\"]"
)
EXECUTES = re.compile(r"\b(pickle|marshal|shelve|dill|cloudpickle)\b|(?<![.\w])(eval|exec)\(")
SLEEPS = re.compile(r"(?<![\w.])(time\.)?sleep\(\s*(?!0\))[\w.]|asyncio\.sleep\(\s*(?!0\))[\w.]")
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
    found = [shown(p) for p in python_files("tests") if SLEEPS.search(p.read_text(encoding="utf-8"))]
    assert [name for name in found if not name.startswith("tests/house/")] == []


def test_no_test_pretends_to_be_what_we_claim_to_work_with() -> None:
    """SQLite, the file system, processes and signals are the real ones."""
    found = [shown(p) for p in python_files("tests") if PRETENDS.search(p.read_text(encoding="utf-8"))]
    assert [name for name in found if not name.startswith("tests/house/")] == []

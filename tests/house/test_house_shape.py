"""How files and functions are cut: names of rooms, lengths, docstrings, words."""

from __future__ import annotations

import ast
import re
import statistics

import pytest
from known_violations import LONG_FILES, LONG_FUNCTIONS, WORDS
from source_tree import ROOT, SRC, functions, given_names, parsed, python_files, shown

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
TEST_FILE_LINES_MAX = 650  # tables of cases are read line by line
TEST_FUNCTION_LINES_MAX = 80  # a plan made for a test is one function
DOCSTRING_LINES_MAX = 8
NO_ROOM = re.compile(r"utils?|helpers?|common|base(_.*)?|manager|misc")
OTHER_WORDS = frozenset(
    ["job", "workflow", "flow", "execution", "session", "node", "activity", "stage", "blob", "epoch", "log", "history"]
)
CODE = ("src", "examples", "bench", "tests")


def test_every_file_is_named_after_its_room() -> None:
    """A file called utils is code that has no room yet."""
    assert [shown(path) for path in python_files(*CODE) if NO_ROOM.fullmatch(path.stem)] == []


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    """A file of 400 lines wants to be two."""
    lengths = {shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in python_files(*CODE)}
    assert {name: n for name, n in lengths.items() if n > _bound(name, FILE_LINES_MAX, TEST_FILE_LINES_MAX)} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    """A function of 60 lines wants a name for its parts."""
    found = {f"{f.file} {f.name}": f.length for path in python_files(*CODE) for f in functions(path)}
    too_long = {n: size for n, size in found.items() if size > _bound(n, FUNCTION_LINES_MAX, TEST_FUNCTION_LINES_MAX)}
    assert too_long == {}


def _bound(name: str, usual: int, in_tests: int) -> int:
    known = {**LONG_FILES, **LONG_FUNCTIONS}
    return known.get(name, in_tests if name.startswith("tests/") else usual)


def test_every_known_violation_is_still_one_and_told_to_people() -> None:
    """An entry that is no longer needed hides the next violation."""
    lengths = {shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in python_files(*CODE)}
    assert [name for name in LONG_FILES if lengths.get(name, 0) <= FILE_LINES_MAX] == []
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [name for name in (*LONG_FILES, *LONG_FUNCTIONS, *WORDS) if name.split()[0] not in page] == []


def test_most_functions_are_small() -> None:
    """In code people enjoy the median function is under 10 lines and nine of ten are under 30."""
    lengths = [f.length for path in python_files("src") for f in functions(path)]
    assert statistics.median(lengths) < 10
    assert statistics.quantiles(lengths, n=10)[-1] < 30


def test_every_module_says_what_lives_there() -> None:
    """A stranger learns from a module's first lines what it holds, what it never does, who calls it."""
    docs = {shown(path): ast.get_docstring(parsed(path)) for path in python_files(*CODE) if path.read_text().strip()}
    assert [name for name, doc in docs.items() if not doc] == []
    long = [name for name, doc in docs.items() if doc and len(doc.splitlines()) > DOCSTRING_LINES_MAX]
    assert [name for name in long if name not in LONG_FILES and name.startswith("src")] == [
        "src/milepost/errors/__init__.py"
    ]


@pytest.mark.parametrize("path", python_files("src"), ids=shown)
def test_no_second_word_for_one_thing(path) -> None:
    """One word for one thing, in every language of the project."""
    found = sorted(name for name in given_names(path) if OTHER_WORDS & set(_words(name)))
    assert [name for name in found if name not in WORDS.get(shown(path), ())] == []


def _words(name: str) -> list[str]:
    return [word.lower().removesuffix("s") for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)]


def test_the_public_rooms_are_the_ones_the_picture_shows() -> None:
    """A new room is a decision, not an accident; the drill's is made (docs/design.md §7)."""
    rooms = {path.name for path in SRC.iterdir() if path.is_dir() and path.name != "__pycache__"}
    below = {"artifacts", "errors", "protocol", "records", "runtime", "sources", "stores"}
    assert rooms == below | {"audit", "cli", "console", "drill", "notify", "shadow", "views", "watch"}


def test_the_store_contract_is_small() -> None:
    """Whoever writes another store reads it whole (design §7)."""
    (contract,) = [
        node
        for node in ast.walk(parsed(SRC / "stores" / "contract.py"))
        if isinstance(node, ast.ClassDef) and node.name == "Store"
    ]
    methods = [node.name for node in contract.body if isinstance(node, ast.FunctionDef)]
    assert len(methods) <= 20, methods
    assert f"A contract of {len(methods)} methods" in (ROOT / "docs" / "design.md").read_text(encoding="utf-8")

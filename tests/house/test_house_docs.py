"""README and docs run as written: files, commands, outputs, snippets, links; no page is out of reach."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from doc_page import Reader, blocks, pages
from source_tree import ROOT, shown

from milepost.cli.main import COMMANDS

NAMES = {name for names in COMMANDS.values() for name in names}
TYPED = [page for page in pages() if any(block.language == "console" for block in blocks(page))]
SNIPPETS = [
    pytest.param(block.text, id=f"{shown(page)}-{number}")
    for page in pages()
    for number, block in enumerate(blocks(page))
    if block.language == "python" and block.file is None
]
OUR_COMMAND = re.compile(r"(?:`|^ *|^\$ (?:\w+=\w+ )?)milepost ([a-z]+)\b", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")


@pytest.mark.parametrize("page", TYPED, ids=shown)
def test_a_reader_who_does_what_the_page_says_sees_what_it_shows(page: Path, tmp_path: Path) -> None:
    """Nothing is shown that does not run: the SIGKILL of the tutorial is a real one."""
    Reader(tmp_path).follow(page)


def test_the_readme_and_the_tutorial_are_among_them() -> None:
    """A page without a console block would pass unread."""
    assert {"README.md", "docs/tutorial.md"} <= {shown(page) for page in TYPED}


@pytest.mark.parametrize("text", SNIPPETS)
def test_every_snippet_runs(text: str, tmp_path: Path) -> None:
    """A snippet that cannot be pasted is a riddle."""
    (tmp_path / "snippet.py").write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, "snippet.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", pages(), ids=shown)
def test_every_link_leads_somewhere(page: Path) -> None:
    """Links are relative to the page, so that they work in a clone and on a web page."""
    broken = [
        target for target in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / target).exists()
    ]
    assert broken == []


@pytest.mark.parametrize("page", pages(), ids=shown)
def test_no_page_names_a_command_that_is_not_there(page: Path) -> None:
    """What a page tells a reader to type exists."""
    named = set(OUR_COMMAND.findall(page.read_text(encoding="utf-8")))
    assert named - NAMES == set()


def test_every_page_is_within_reach_of_the_readme() -> None:
    """A page nobody links to is a page nobody reads."""
    reached, left = set(), [ROOT / "README.md"]
    while left:
        page = left.pop().resolve()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        left += [page.parent / target for target in LINK.findall(page.read_text(encoding="utf-8"))]
    assert [shown(page) for page in pages() if page.resolve() not in reached] == []

"""`docs/reliability.md` says what was counted, and nothing else."""

from __future__ import annotations

import sys

from source_tree import ROOT

sys.path.append(str(ROOT / "tools"))

from reliability import HARMS, PAGE, RESULTS, page
from results import read


def test_the_page_is_what_the_results_make() -> None:
    """A number that somebody wrote by hand is a claim; `make reliability` writes the page."""
    assert PAGE.read_text(encoding="utf-8") == page(read(RESULTS))


def test_no_harness_found_anything_and_every_planted_bug_was_caught() -> None:
    """A page with another number than zero is a bug report, not a page."""
    lines = read(RESULTS)
    assert [x for x in lines if "harness" in x and any(x[harm] for harm in HARMS)] == []
    assert [x["mutant"] for x in lines if "mutant" in x and not x["caught_by"]] == []


def test_what_ran_twice_on_one_commit_with_one_seed_counts_once() -> None:
    """Trying the same points again proves nothing new."""
    zeros = dict.fromkeys(HARMS, 0)
    run = {"harness": "h", "kind": "k", "tried": 7, "seed": 1, "seconds": 1.0, "notes": "", "commit": "c", "day": "d"}
    once, twice = page([{**run, **zeros}]), page([{**run, **zeros}, {**run, **zeros}])
    assert once == twice
    assert "| k | 7 |" in once


def test_every_harness_can_be_run_by_its_name_and_has_its_slice() -> None:
    """What `make soak` runs for hours, `make test` runs for seconds; only `crash_points` is a test of its own there."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "soak").glob("*.py")}
    names = {name for name, text in texts.items() if "\nKIND = " in text and not name.startswith("test_")}
    slices = "".join(text for name, text in texts.items() if name.startswith("test_slice_"))
    assert [name for name in names if f'"{name}"' not in texts["soak"]] == []
    assert [name for name in names - {"crash_points"} if f'"{name}"' not in slices] == []

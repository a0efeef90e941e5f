"""The planted bugs fit the code as it is: a mutant that is no longer planted proves nothing."""

from __future__ import annotations

import sys

import pytest
from source_tree import ROOT

sys.path.append(str(ROOT / "tools"))

from mutants.catalogue import Mutant, mutants

MUTANTS = mutants()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_changes_one_place_and_is_still_python(mutant: Mutant) -> None:
    """Whoever moves the line that a bug is planted in moves the bug along, in tools/mutants/catalogue.toml."""
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert mutant.planted_in(text) != text


def test_there_are_as_many_as_we_say_and_each_has_its_own_judges() -> None:
    """Fifteen are the least that says anything about a net."""
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 15
    assert [mutant.name for mutant in MUTANTS if not mutant.judges or not mutant.breaks] == []


def test_every_judge_is_there() -> None:
    """A judge that was moved would notice everything."""
    judges = {judge.name: judge for mutant in MUTANTS for judge in mutant.judges}
    asked = [(name, path) for name, its in judges.items() for path in its.run if path.endswith(".py")]
    assert [(name, path) for name, path in asked if not (ROOT / path).exists()] == []

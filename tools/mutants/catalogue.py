"""Reads `catalogue.toml`: the planted bugs and the judges that are meant to notice them. Runs nothing."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("catalogue.toml")


class Misplaced(Exception):
    """A mutant does not fit the code as it is; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Something that is run against a mutant; exit status 0 means that it noticed nothing."""

    name: str
    proves: str
    run: Sequence[str]  # arguments of the Python that runs it


@dataclass(frozen=True, slots=True)
class Mutant:
    """One small change that breaks one promise, and the judges that should notice, cheapest first."""

    name: str
    breaks: str
    file: str
    old: str
    new: str
    judges: Sequence[Judge]
    all: bool = False

    def planted_in(self, text: str) -> str:
        """Return the file's text with the bug in it. Raises: Misplaced."""
        found = text.count(self.old)
        if found == 0 or (found > 1 and not self.all):
            raise Misplaced(f"{self.name}: {self.file} has {found} times {self.old!r}, expected once")
        mutated = text.replace(self.old, self.new)
        if self.file.endswith(".py"):
            self._check_syntax(mutated)
        return mutated

    def _check_syntax(self, mutated: str) -> None:
        try:
            compile(mutated, self.file, "exec")
        except SyntaxError as error:
            raise Misplaced(f"{self.name}: {self.file} is no Python any more: {error}") from error


def mutants(page: Path = PAGE) -> list[Mutant]:
    """Return the planted bugs in their order. Raises: KeyError for a judge that the page does not define."""
    read = tomllib.loads(page.read_text(encoding="utf-8"))
    judges = {name: Judge(name, **about) for name, about in read["judge"].items()}
    return [_mutant(about, judges) for about in read["mutant"]]


def _mutant(about: dict[str, Any], judges: dict[str, Judge]) -> Mutant:
    return Mutant(**{**about, "judges": [judges[name] for name in about["judges"]]})

"""Plants each bug of `catalogue.toml` in a copy of the package and shows who notices: `make mutants`.

A judge must find nothing in the unchanged package before its verdict on a mutant counts. Exit status 0 when every
mutant is caught, 1 when one survives (a test is missing), 2 when a mutant or a judge does not fit the code as it is.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from catalogue import Judge, Misplaced, Mutant, mutants
from workshop import JUDGE_S_MAX, Judged, Verdict, copied, judged

FACTOR = 5
"""A judge may take so many times as long for a mutant as for the unchanged package before it counts as hanging."""
LEAST_S = 90.0
"""Seconds a judge always has: this machine may be busy."""


class Unfit(Exception):
    """A judge does not accept the unchanged package: its verdict would prove nothing."""


@dataclass
class Courtroom:
    """Judges that were shown the unchanged package, and how long each took for it."""

    _known: dict[str, float] = field(default_factory=dict)

    def seconds_max(self, judge: Judge) -> float:
        """Return how long a judge may take for a mutant. Raises: Unfit."""
        if judge.name not in self._known:
            with copied(None) as folder:
                found = judged(folder, judge)
            if found.verdict is not Verdict.NOTHING:
                raise Unfit(f"{judge.name} is {found.verdict} without any bug planted:\n{found.said}")
            self._known[judge.name] = found.seconds
        return min(JUDGE_S_MAX, max(LEAST_S, FACTOR * self._known[judge.name]))

    def try_mutant(self, mutant: Mutant, *, every: bool) -> dict[str, Judged]:
        """Put a mutant before its judges until one notices, or before all of them. Raises: Unfit, Misplaced."""
        found: dict[str, Judged] = {}
        for judge in mutant.judges:
            allowed = self.seconds_max(judge)
            with copied(mutant) as folder:
                found[judge.name] = judged(folder, judge, allowed)
            if found[judge.name].verdict is Verdict.BROKEN:
                raise Unfit(f"{judge.name} cannot judge {mutant.name}:\n{found[judge.name].said}")
            if found[judge.name].verdict.caught and not every:
                break
        return found


def told(mutant: Mutant, found: dict[str, Judged]) -> dict[str, object]:
    """Return a mutant's line of the results."""
    return {
        "mutant": mutant.name,
        "breaks": mutant.breaks,
        "file": mutant.file,
        "caught_by": [name for name, judged in found.items() if judged.verdict.caught],
        "missed_by": [name for name, judged in found.items() if not judged.verdict.caught],
        "seconds": round(sum(judged.seconds for judged in found.values()), 1),
    }


def note(line: dict[str, object]) -> None:
    """Append a line to the file that MILEPOST_SOAK_RESULTS names, if any. Crash: the line or none."""
    path = os.environ.get("MILEPOST_SOAK_RESULTS")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def shown(line: dict[str, object], found: dict[str, Judged]) -> str:
    """Return a mutant's line of the table: ✓ who noticed, – who did not."""
    marks = ", ".join(f"{'✓' if judged.verdict.caught else '–'} {name}" for name, judged in found.items())
    return (
        f"{line['mutant']!s:<46} {'caught' if line['caught_by'] else 'SURVIVES':<8} {line['seconds']!s:>6} s  {marks}"
    )


def survivors(chosen: Sequence[Mutant], *, every: bool) -> list[str]:
    """Try mutants one after the other, print the table, return the names of those nobody noticed."""
    courtroom, left = Courtroom(), []
    for mutant in chosen:
        found = courtroom.try_mutant(mutant, every=every)
        line = told(mutant, found)
        note(line)
        print(shown(line, found), flush=True)
        if not line["caught_by"]:
            left.append(mutant.name)
    return left


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="a mutant by name; may be given more than once")
    parser.add_argument("--every", action="store_true", help="let every judge of a mutant speak, not only the first")
    given = parser.parse_args()
    chosen = [mutant for mutant in mutants() if given.only is None or mutant.name in given.only]
    try:
        left = survivors(chosen, every=given.every)
    except (Misplaced, Unfit) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{len(chosen)} planted bugs, {len(chosen) - len(left)} caught" + "".join(f"\n  survives: {x}" for x in left))
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())

"""Plants each bug of `catalogue.toml` in a copy of the package and shows who notices: `make mutants`.

A judge must find nothing in the unchanged package before its verdict on a mutant counts. Exit status 0 when every
mutant is caught, 1 when one survives (a test is missing), 2 when a mutant or a judge does not fit the code as it is.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from mutants.catalogue import Judge, Misplaced, Mutant, mutants
from mutants.workshop import JUDGE_S_MAX, Judged, Verdict, copied, judged
from results import note

FACTOR = 5
"""A judge may take so many times as long for a mutant as for the unchanged package before it counts as hanging."""
LEAST_S = 300.0
"""Seconds a judge always has: this machine may be busy."""


@dataclass
class Courtroom:
    """Judges that were shown the unchanged package: how long each took for it, and why some cannot judge."""

    _known: dict[str, Judged] = field(default_factory=dict)

    @property
    def unfit(self) -> dict[str, str]:
        """Return judges that do not accept the unchanged package, and what they said: their verdict proves nothing."""
        return {name: its.said for name, its in self._known.items() if its.verdict is not Verdict.NOTHING}

    def _shown_unchanged(self, judge: Judge) -> Judged:
        if judge.name not in self._known:
            with copied(None) as folder:
                self._known[judge.name] = judged(folder, judge)
        return self._known[judge.name]

    def judge(self, mutant: Mutant, judge: Judge) -> Judged:
        """Put a mutant before a judge; BROKEN when its verdict would prove nothing. Raises: Misplaced."""
        before = self._shown_unchanged(judge)
        if judge.name in self.unfit:
            return Judged(Verdict.BROKEN, 0.0, before.said)
        allowed = min(JUDGE_S_MAX, max(LEAST_S, FACTOR * before.seconds))
        with copied(mutant) as folder:
            return judged(folder, judge, allowed)

    def try_mutant(self, mutant: Mutant, *, every: bool) -> dict[str, Judged]:
        """Put a mutant before its judges until one notices, or before all of them. Raises: Misplaced."""
        found: dict[str, Judged] = {}
        for judge in mutant.judges:
            found[judge.name] = self.judge(mutant, judge)
            if found[judge.name].verdict.caught and not every:
                break
        return found


def told(mutant: Mutant, found: dict[str, Judged]) -> dict[str, object]:
    """Return a mutant's line of the results."""
    return {
        "mutant": mutant.name,
        "breaks": mutant.breaks,
        "file": mutant.file,
        "caught_by": [_noticed(name, judged) for name, judged in found.items() if judged.verdict.caught],
        "missed_by": [name for name, judged in found.items() if not judged.verdict.caught],
        "seconds": round(sum(judged.seconds for judged in found.values()), 1),
    }


def _noticed(name: str, judged: Judged) -> str:
    return f"{name} (it hangs)" if judged.verdict is Verdict.HUNG else name


def shown(line: dict[str, object], found: dict[str, Judged]) -> str:
    """Return a mutant's line of the table: ✓ who noticed, – who did not, ? who could not judge."""
    signs = {Verdict.NOTHING: "–", Verdict.BROKEN: "?"}
    marks = ", ".join(f"{signs.get(judged.verdict, '✓')} {name}" for name, judged in found.items())
    verdict = "caught" if line["caught_by"] else "SURVIVES"
    return f"{line['mutant']!s:<46} {verdict:<8} {line['seconds']!s:>6} s  {marks}"


def survivors(courtroom: Courtroom, chosen: Sequence[Mutant], *, every: bool) -> list[str]:
    """Try mutants one after the other, print the table, return the names of those nobody noticed."""
    left = []
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
    # A shell's background command ignores SIGINT and would hand that on to tests which send it and wait.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    courtroom = Courtroom()
    try:
        left = survivors(courtroom, chosen, every=given.every)
    except Misplaced as misplaced:
        print(misplaced, file=sys.stderr)
        return 2
    for name, said in courtroom.unfit.items():
        print(f"{name} does not accept the package without any bug:\n{said}", file=sys.stderr)
    print(f"{len(chosen)} planted bugs, {len(chosen) - len(left)} caught", *left, sep="\n  survives: ")
    return 1 if left else 2 if courtroom.unfit else 0


if __name__ == "__main__":
    sys.exit(main())

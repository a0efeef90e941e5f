"""What every error of Milepost has: a message built from facts, a stable code, a hint, an exit status."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar


def to_type(hint: str, facts: Mapping[str, object]) -> str:
    """Return a hint with the run and the question it is about filled in, to be typed as it stands."""
    for word, fact in (("RUN", "run_id"), ("QUESTION", "question_id")):
        if fact in facts:
            hint = hint.replace(f" {word}", f" {shlex.quote(str(facts[fact]))}")
    return hint


class MilepostError(Exception):
    """Base of every error Milepost raises on purpose.

    Facts come in by keyword and stay as attributes; `sentence` and `hint` are filled in from them.
    `code` is stable across releases; `hint` is the next action in one sentence, which a fact `hint` replaces where
    the raiser knows a better one.
    """

    code: ClassVar[str] = "milepost"
    sentence: ClassVar[str] = "{reason}"
    hint: ClassVar[str] = "Read the message."
    exit_status: ClassVar[int] = 2

    def __init__(self, **facts: object) -> None:
        self.facts = facts
        hint = str(facts["hint"]) if "hint" in facts else self.hint.format(**facts)
        self.hint = to_type(hint, facts)  # type: ignore[misc]
        super().__init__(self.sentence.format(**facts))

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["facts"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **self.facts), ()

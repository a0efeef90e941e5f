"""What every error of Milepost has: a message built from facts, a stable code, a hint, an exit status."""

from __future__ import annotations

from typing import Any, ClassVar


class MilepostError(Exception):
    """Base of every error Milepost raises on purpose.

    Facts come in by keyword and stay as attributes; the class builds the message.
    `code` is stable across releases; `hint` is the next action in one sentence, which a fact `hint` replaces where
    the raiser knows a better one.
    """

    code: ClassVar[str] = "milepost"
    sentence: ClassVar[str] = "{reason}"
    hint: ClassVar[str] = "Read the message."
    exit_status: ClassVar[int] = 2

    def __init__(self, **facts: object) -> None:
        self.facts = facts
        if "hint" in facts:
            self.hint = str(facts["hint"])  # type: ignore[misc]
        super().__init__(self.sentence.format(**facts))

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["facts"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.facts))


def _rebuild(cls: type[MilepostError], facts: dict[str, object]) -> MilepostError:
    return cls(**facts)

"""The questions a run can ask: one sentence, the evidence, and what each choice will do (design §6). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from milepost.protocol.keep import beside
from milepost.protocol.ops import Artifact, Ask
from milepost.protocol.snapshot import Snapshot
from milepost.records.canonical import Json, canonical, digest
from milepost.records.model import ERROR_SIZE_MAX, Choice, QuestionAsked, QuestionKind
from milepost.records.shown import cut_to_size

_STOP = Choice("stop", "End this run here. What was done stands; go on later with `milepost fork`.")

CHOICES: Mapping[QuestionKind, tuple[Choice, ...]] = {
    QuestionKind.SOURCE_CHANGED: (
        Choice("keep", "Keep what was verified; what is there now becomes what is expected."),
        Choice(
            "redo", "Run the step again with what is there now, and each later step whose inputs come out different."
        ),
        _STOP,
    ),
    QuestionKind.REQUEST_CHANGED: (
        Choice("keep", "Keep what was applied and return its recorded result; nothing is sent."),
        Choice("send", "Send the new request as well, under a new key. What was applied before stays at the provider."),
        _STOP,
    ),
    QuestionKind.PLAN_CHANGED: (
        Choice(
            "accept",
            "Go on with the plan as it is now: what has no record runs; finished records it does not call stay unused.",
        ),
        _STOP,
    ),
    QuestionKind.VERSIONS_CHANGED: (
        Choice("accept", "Keep what the old versions produced and go on with the new ones."),
        Choice(
            "redo", "Run the steps made with other versions again, and each later step whose inputs come out different."
        ),
        _STOP,
    ),
    QuestionKind.OUTCOME_UNKNOWN: (
        Choice("applied", "Record that it happened; it is never sent again.", ("ref", "result")),
        Choice("not-applied", "Record that it did not happen; it is sent again when the plan reaches it."),
        _STOP,
    ),
    QuestionKind.ATTEMPTS_USED: (
        Choice("again", "Allow as many attempts once more."),
        _STOP,
    ),
    QuestionKind.LIMIT_REACHED: (
        Choice("again", "Go on, and allow as much once more from here."),
        _STOP,
    ),
    QuestionKind.APPROVAL: (
        Choice("approve", "Allow exactly this; it is done when the run is resumed."),
        Choice("edit", "Send it with other arguments, given as JSON, and nothing else.", ("request",)),
        Choice("redo", "Run the step again; its new output is asked about anew."),
        Choice("decline", "Do not do it. The plan is told so on each resume, and may go on without it."),
    ),
    QuestionKind.STORE_WENT_BACK: (
        Choice("go-on-in-doubt", "Go on; every effect without a record is looked up or asked about before it is sent."),
        _STOP,
    ),
    QuestionKind.SHADOW_RESULT_NEEDED: (
        Choice("give", "Go on with this result in the place of the provider's; nothing is sent.", ("result",)),
        Choice("again", "Ask the effect's shadow= for it, which was added meanwhile; nothing is sent."),
        _STOP,
    ),
}
"""For each kind of question, every choice there is; each is tested."""
ID_DIGITS = 16
"""Hexadecimal digits of a question's id: 64 bits, so that nobody finds another question that has the same."""


def ask(
    kind: QuestionKind,
    s: Snapshot,
    *,
    run_id: str,
    at: str,
    path: str = "",
    sentence: str,
    evidence: Any = None,
    about: Mapping[str, Any] | None = None,
    without: Sequence[str] = (),
    once: str = "",
) -> Ask:
    """Build the operation that asks.

    The count of records before it makes the id unique. The id also covers what is asked, so that an answer to it,
    sealed with the id, is about nothing else.
    Where only some may answer what is no approval, the sentence says who: an approval is shown with its rule.
    `without` leaves out choices that make no sense here; `evidence` is kept already when it is an Artifact.
    `once` names what several branches ask only once.
    """
    few = (about or {}).get("approvers")
    if few and kind != QuestionKind.APPROVAL:
        sentence = f"{sentence} May answer: {', '.join(few)}."
    kept = evidence if isinstance(evidence, Artifact) or evidence is None else beside(canonical(evidence))
    said: list[Json] = [run_id, s.record_count, kind.value, path, sentence, kept.pointer.digest if kept else None]
    question = QuestionAsked(
        at=at,
        question_id="q-" + digest(canonical([*said, dict(about or {})]))[:ID_DIGITS],
        question_kind=kind.value,
        path=path,
        sentence=cut_to_size(sentence, ERROR_SIZE_MAX),
        choices=tuple(choice for choice in CHOICES[kind] if choice.name not in without),
        evidence=kept.pointer if kept else None,
        about=dict(about or {}),
    )
    return Ask(question, kept, once)


def listed(names: Sequence[str], most: int = 3) -> str:
    """Name a few things in a sentence: `a, b, c and 4 more`."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def counted(number: int, thing: str, things: str | None = None) -> str:
    """Say a number of things: 1 step, 3 steps."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def ended(text: str) -> str:
    """Return a text with one full stop at its end, whoever wrote it: `Foo & Co.` has it already."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def short(fingerprint: str | None) -> str:
    """Say a fingerprint in a sentence; None is that there is nothing."""
    return "nothing" if fingerprint is None else f"{fingerprint[:12]}…"


def done_before(s: Snapshot, paths: Sequence[str]) -> str:
    """Say in a word what calls were before the plan changed."""
    unfinished = [path for path in paths if not s.is_finished(path)]
    in_doubt = [path for path in unfinished if s.left_open_in(path)]
    said = {
        "finished": any(s.is_finished(path) and path not in s.declined for path in paths),
        "declined": any(path in s.declined for path in paths),
        "left in doubt": bool(in_doubt),
        "begun (an effect in it was applied)": len(in_doubt) < len(unfinished),
    }
    return " or ".join(word for word, is_said in said.items() if is_said)


def uncalled_question(path: str, uncalled: Sequence[str], s: Snapshot, *, run_id: str, at: str) -> Ask:
    """Ask about what was finished or declined, and what a body, having returned, did not call again."""
    return ask(
        QuestionKind.PLAN_CHANGED,
        s,
        run_id=run_id,
        at=at,
        path=path,
        sentence=(
            f"{listed(uncalled)} was {done_before(s, uncalled)} before, "
            "but the plan as it is now did not call it again."
        ),
        evidence={"not_called_again": list(uncalled)},
        about={"paths": list(uncalled)},
    )

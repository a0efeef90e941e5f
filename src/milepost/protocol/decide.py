"""Resume: the same six rules every time (design §6). Pure: what the journal says plus what the world says.

`decide(snapshot, world)` gives exactly one decision; the runtime carries it out and asks again until it is
`Continue`. What was found, in one line per rule, is `findings`' business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from milepost.errors import RefusedError
from milepost.protocol.limits import Limits
from milepost.protocol.ops import Ask, Moment
from milepost.protocol.outcomes import Found, NotFound
from milepost.protocol.policy import RESUMES_MAX
from milepost.protocol.questions import ask, listed, short
from milepost.protocol.snapshot import Snapshot
from milepost.protocol.state import EffectState, Send
from milepost.protocol.used import first_reached
from milepost.protocol.versions import SINCE_PROMOTION, VersionCheck, accepted, difference_of
from milepost.protocol.within import limit_question
from milepost.records.frozen import frozen, slotted
from milepost.records.model import ENDED, QuestionAsked, QuestionKind, RunStatus
from milepost.records.rows import AnswerRow, CancelRow
from milepost.records.times import parse_time

SOURCES_SAID = 3
"""Changed sources in the sentence of their question; the evidence has all of them."""


@frozen
class SourceCheck:
    """One source: what is expected of it, what is there now. None: absent."""

    key: str
    name: str
    expected: str | None
    found: str | None
    readers: Sequence[str]  # the steps that used it since it was written
    writer: str | None = None  # the step that wrote or returned it, if any did
    changes: Sequence[str] = ()
    can_put_back: bool = False  # gone, and its content is an artifact

    @property
    def steps(self) -> Sequence[str]:
        """Return the steps that rest on it."""
        return [*([self.writer] if self.writer is not None else []), *self.readers]


@slotted
class World:
    """What the world says now. None means: not asked yet."""

    at: str
    run_id: str
    moment: Moment | None = None  # the same as `at`, by every clock
    refusal: RefusedError | None = None  # rule 1: corrupt, or the seal key is missing
    went_back_to: int | None = None  # the witness remembers more records than the store has
    witnessed: int = 0
    answers: Mapping[str, Sequence[AnswerRow]] = field(default_factory=dict)  # those that settle their question
    cancel: CancelRow | None = None
    sources: Sequence[SourceCheck] | None = None
    has_put_back: bool = False  # once is enough: what is gone still cannot be put back
    lookups: Mapping[str, object] | None = None  # effect path -> Found | NotFound | CannotTell
    versions: Sequence[VersionCheck] | None = None
    ask_on_version_change: bool = False
    promotion: VersionCheck | None = None  # in what the task's role is another than the promoted one
    limits: Limits | None = None  # of the task


# ── decisions ───────────────────────────────────────────────────────────────────────────────────────


@frozen
class Refuse:
    error: RefusedError


@frozen
class Finished:
    """The run has ended; its recorded result is returned, or the end is told."""

    status: RunStatus


@frozen
class StillAsking:
    """Open questions without an answer: nothing runs."""

    questions: Sequence[QuestionAsked]


@frozen
class EnterAnswers:
    answers: Sequence[tuple[QuestionAsked, AnswerRow]]


@frozen
class EnterCancel:
    by: str
    note: str


@frozen
class End:
    status: RunStatus


@frozen
class LookAtSources:
    """Rule 2 needs the world."""


@frozen
class PutBack:
    sources: Sequence[SourceCheck]


@frozen
class SettleIntent:
    """A person's answer, or what the provider said, closes an open intent."""

    effect: EffectState
    found: Found[Any] | None


@frozen
class LookUpIntents:
    """Rule 3 needs the world."""

    intents: Sequence[tuple[EffectState, Send]]


@frozen
class AskWhatBecame:
    """Only a person can tell what became of these intents, and the run is to end."""

    intents: Sequence[tuple[EffectState, Send]]


@frozen
class LookAtVersions:
    """Rule 4 needs the world."""


@frozen
class NoteVersions:
    versions: Sequence[VersionCheck]


@frozen
class Continue:
    """Rule 5: go on with the plan."""


Decision = (
    Refuse
    | Finished
    | StillAsking
    | EnterAnswers
    | EnterCancel
    | End
    | LookAtSources
    | PutBack
    | SettleIntent
    | LookUpIntents
    | AskWhatBecame
    | LookAtVersions
    | NoteVersions
    | Ask
    | Continue
)


def decide(s: Snapshot, w: World) -> Decision:
    """Return the one next decision for a run about to go on."""
    for rule in (_trust, _ended, _people, _sources, _intents, _versions, _bound):
        decision = rule(s, w)
        if decision is not None:
            return decision
    return Continue()


# ── 1 trust ─────────────────────────────────────────────────────────────────────────────────────────


def _trust(s: Snapshot, w: World) -> Decision | None:
    if w.refusal is not None:
        return Refuse(w.refusal)
    if w.went_back_to is None or asked_about_going_back(s, w):
        return None
    return ask(
        QuestionKind.STORE_WENT_BACK,
        s,
        run_id=w.run_id,
        at=w.at,
        sentence=(
            f"The store went back in time: this machine saw record {w.witnessed} of the run, "
            f"the store agrees only up to {w.went_back_to}. Effects after that may have happened."
        ),
        evidence={"witnessed": w.witnessed, "agrees_to": w.went_back_to},
        about={"witnessed": w.witnessed},
    )


def asked_about_going_back(s: Snapshot, w: World) -> bool:
    """Say whether a person was asked already about a store that went back from what this machine saw."""
    known = [*s.questions.values(), *(question for question, _ in s.answered.values())]
    back = (q for q in known if q.question_kind == QuestionKind.STORE_WENT_BACK)
    return any(q.about.get("witnessed") == w.witnessed for q in back)


def _ended(s: Snapshot, w: World) -> Decision | None:
    return Finished(s.status) if s.status in ENDED else None


def _people(s: Snapshot, w: World) -> Decision | None:
    """Answers and cancel requests are entered before anything else; an open question stops the run."""
    given = [(q, answer) for i, q in s.questions.items() for answer in w.answers.get(i, ())]
    if given:
        return EnterAnswers(given)
    if s.stopped:
        return End(RunStatus.STOPPED)
    if w.cancel is not None and s.cancel is None:
        return EnterCancel(by=w.cancel.by, note=w.cancel.note)
    still = [q for q in s.questions.values() if s.cancel is None or _keeps_from_ending(s, q)]
    return StillAsking(still) if still else None


def _keeps_from_ending(s: Snapshot, q: QuestionAsked) -> bool:
    """Say whether a cancelled run still needs this answer: only what became of an open intent matters to it."""
    state = s.effects.get(q.path)
    return q.question_kind == QuestionKind.OUTCOME_UNKNOWN and state is not None and bool(state.open_sends)


# ── 2 sources ───────────────────────────────────────────────────────────────────────────────────────


def _sources(s: Snapshot, w: World) -> Decision | None:
    if s.cancel is not None:
        return None
    if w.sources is None:
        return LookAtSources()
    gone = [c for c in w.sources if c.can_put_back]
    if gone and not w.has_put_back:
        return PutBack(gone)
    changed = [c for c in w.sources if c.found != c.expected]
    return _source_question(s, w, changed) if changed else None


def _source_question(s: Snapshot, w: World, changed: Sequence[SourceCheck]) -> Ask:
    steps = sorted({path for check in changed for path in check.steps})
    more = f"; and {len(changed) - SOURCES_SAID} more" if len(changed) > SOURCES_SAID else ""
    return ask(
        QuestionKind.SOURCE_CHANGED,
        s,
        run_id=w.run_id,
        at=w.at,
        path=steps[0] if steps else "",
        sentence=f"{'; '.join(_changed_since(c) for c in changed[:SOURCES_SAID])}{more}.",
        evidence=[
            {
                "source": c.name,
                "expected": c.expected,
                "found": c.found,
                "written_by": c.writer,
                "used_by": list(c.readers),
                "changes": list(c.changes),
            }
            for c in changed
        ],
        about={"accept": {c.key: c.found for c in changed}, "steps": steps},
        without=() if steps else ("redo",),
    )


def _changed_since(check: SourceCheck) -> str:
    did = [f"{check.writer} wrote"] if check.writer is not None else []
    if check.readers or not did:
        did.append(f"{listed(check.readers) or 'the start'} used")
    detail = f" ({check.changes[0]})" if check.changes else ""
    expected, found = short(check.expected), short(check.found)
    return f"{check.name} changed since {' and '.join(did)} it: expected {expected}, found {found}{detail}"


# ── 3 intents ───────────────────────────────────────────────────────────────────────────────────────


def _intents(s: Snapshot, w: World) -> Decision | None:
    open_intents = list(s.open_intents())
    for state, _ in open_intents:
        if state.answer is not None:
            return SettleIntent(state, None)
    if open_intents and w.lookups is None:
        return LookUpIntents(open_intents)
    for state, _ in open_intents:
        answer = (w.lookups or {}).get(state.path)
        if isinstance(answer, Found):
            return SettleIntent(state, answer)
    if s.cancel is not None:
        return _cancelled(w, open_intents)
    return None


def _cancelled(w: World, open_intents: Sequence[tuple[EffectState, Send]]) -> Decision:
    """A cancelled run ends when no intent is open: what cannot be looked up, a person must say."""
    lookups = w.lookups or {}
    doubts = [(state, send) for state, send in open_intents if not isinstance(lookups.get(state.path), NotFound)]
    return AskWhatBecame(doubts) if doubts else End(RunStatus.CANCELLED)


# ── 4 versions ──────────────────────────────────────────────────────────────────────────────────────


def _versions(s: Snapshot, w: World) -> Decision | None:
    if w.versions is None:
        return LookAtVersions()
    noted = [c for c in w.versions if not c.of_role]
    changed = must_be_asked(w)
    if all(accepted(s, c) for c in changed):
        return NoteVersions(noted) if noted else None
    steps = [c.path for c in changed if c.path] or sorted(p for p, x in s.steps.items() if x.verified)
    return ask(
        QuestionKind.VERSIONS_CHANGED,
        s,
        run_id=w.run_id,
        at=w.at,
        sentence=(f"Versions changed since {_since(changed, steps)}: {listed([difference_of(c) for c in changed])}."),
        evidence=[{"of": c.of or "the task", "old": dict(c.old), "new": dict(c.new)} for c in changed],
        about={"steps": steps, "new": {c.of: dict(c.new) for c in changed}},
    )


def _since(changed: Sequence[VersionCheck], steps: Sequence[str]) -> str:
    found = [listed(steps)] if steps and not all(c.of_role for c in changed) else []
    found += [SINCE_PROMOTION] if any(c.of_role for c in changed) else []
    return " and ".join(found) or "the start"


def must_be_asked(w: World) -> list[VersionCheck]:
    """Return the changes that a person has to accept: where the task says so, and always what was promoted."""
    return [c for c in w.versions or () if w.ask_on_version_change or c.of_role]


# ── 6 bound ─────────────────────────────────────────────────────────────────────────────────────────


def _bound(s: Snapshot, w: World) -> Decision | None:
    use = first_reached(w.limits, s.used, parse_time(w.at))
    if use is not None:
        return limit_question(use, s, run_id=w.run_id, at=w.at)
    if s.fruitless < RESUMES_MAX:
        return None
    stuck = [state.path for state in s.in_progress()]
    return ask(
        QuestionKind.ATTEMPTS_USED,
        s,
        run_id=w.run_id,
        at=w.at,
        sentence=(
            f"{s.fruitless} resumes in a row ended without an orderly stop and brought no new checkpoint; "
            f"in progress: {listed(stuck) or 'nothing'}."
        ),
    )

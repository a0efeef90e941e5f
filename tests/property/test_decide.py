"""`decide` answers every snapshot and every world with exactly one decision; attempts never pass the policy."""

from __future__ import annotations

import copy
import typing
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from milepost import CannotTell, Found, NotFound, Retry, task
from milepost.declare import step_spec
from milepost.errors import CorruptRecord
from milepost.protocol import decide as rules
from milepost.protocol.call import Call
from milepost.protocol.decide import SourceCheck, World, decide
from milepost.protocol.failure import error_record
from milepost.protocol.findings import findings
from milepost.protocol.fold import fold_record
from milepost.protocol.limits import Limits
from milepost.protocol.ops import Append, Ask, Body, Ended, Load, Moment, Now, Op, Wait
from milepost.protocol.policy import STARTS_MAX
from milepost.protocol.questions import CHOICES, ask
from milepost.protocol.snapshot import Snapshot
from milepost.protocol.step import step
from milepost.protocol.versions import VersionCheck
from milepost.records import model as m
from milepost.records.rows import AnswerRow, CancelRow
from milepost.records.times import format_time

START = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)
POINTER = m.Pointer("0" * 64, 2)
STEPS = ("extract", "match", "outer", "outer/inner")
EFFECTS = ("post", "outer/mail")
DECISIONS = typing.get_args(rules.Decision)

# ── journals ────────────────────────────────────────────────────────────────────────────────────────

LINES = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, 1, 2, 3, 4, 5, 5, 6, 6, 7, 8, 9, 9, 10, 11, 12, 13, 14]),
        st.integers(0, 5),
        st.sampled_from(list(m.QuestionKind)),
        st.integers(0, 3),
    ),
    max_size=40,
)
"""What may happen to a run, one line after another; what cannot happen at its place is left out."""


def journal(lines: Sequence[tuple[int, int, m.QuestionKind, int]]) -> Snapshot:
    """Fold a journal that says these lines."""
    s = Snapshot()
    fold_record(s, started())
    for number, line in enumerate(lines):
        at = format_time(START + timedelta(minutes=number))
        record = record_of(s, at, *line)
        if record is not None and s.status not in m.ENDED:
            fold_record(s, record)
    return s


def started() -> m.RunStarted:
    return m.RunStarted(
        at=format_time(START), task="t", target="t:t", folder="/", inputs=POINTER, inputs_fingerprint="i",
        versions={"code": "1"}, family="r",
    )  # fmt: skip


def record_of(s: Snapshot, at: str, what: int, which: int, kind: m.QuestionKind, choice: int) -> m.Record | None:
    """Return the record of one line, None where it could not have been written."""
    path, effect = STEPS[which % len(STEPS)], EFFECTS[which % len(EFFECTS)]
    step_state, effect_state = s.steps.get(path), s.effects.get(effect)
    attempt = step_state.attempt if step_state else 0
    last = effect_state.last if effect_state else None
    error = error_record(ValueError("x"))
    if what <= 1:
        return m.StepStarted(at=at, path=path, attempt=attempt + 1, inputs_fingerprint="i")
    if what == 2 and attempt:
        return m.StepVerified(
            at=at, path=path, attempt=attempt, inputs_fingerprint="i", output=POINTER, spent={"cost": str(choice)}
        )
    if what == 3 and attempt:
        return m.StepFailedNoted(at=at, path=path, attempt=attempt, error=error, final=choice == 0)
    if what == 4 and attempt:
        return m.StartReturned(at=at, path=path, attempt=attempt)
    if what in (5, 6):
        return intent(at, effect, last.intent.attempt + 1 if last else 1)
    if what in (7, 8) and last is not None:
        return m.OutcomeRecorded(
            at=at, path=effect, attempt=last.intent.attempt, key="k", outcome=list(m.Outcome)[choice % 3].value
        )
    if what == 9:
        return asked(s, at, kind, effect if effect in s.effects else "")
    if what == 10 and s.questions:
        return answer(at, next(iter(s.questions.values())), choice)
    if what == 11:
        return m.RunResumed(at=at, number=s.resumes + 1, token=2, holder={})
    if what == 12:
        return m.RunEnded(at=at, status=list(m.RunStatus)[which % 5].value)
    if what == 13 and s.cancel is None:
        return m.CancelEntered(at=at, by="ada")
    if what == 14 and choice == 3 and not s.questions:
        return m.RunEnded(at=at, status=m.RunStatus.DONE, output=POINTER)
    return None


def intent(at: str, path: str, attempt: int) -> m.IntentRecorded:
    return m.IntentRecorded(
        at=at, path=path, effect=path, attempt=attempt, key="k", provider="p", request=POINTER, request_digest="d"
    )


def asked(s: Snapshot, at: str, kind: m.QuestionKind, path: str) -> m.QuestionAsked:
    about: dict[str, Any] = {
        "request_digest": "e",
        "steps": ["extract"],
        "paths": ["match"],
        "when": "before",
        "approvals": 1,
    }
    about["limit"] = ("cost", "resumes", "wall", "same_error")[s.record_count % 4]
    question = ask(kind, s, run_id="r", at=at, path=path, sentence="?", about=about).question
    return replace(question, path=path or "post") if kind == m.QuestionKind.REQUEST_CHANGED else question


def answer(at: str, question: m.QuestionAsked, choice: int) -> m.AnswerEntered:
    name = question.choices[choice % len(question.choices)].name
    return m.AnswerEntered(at=at, question_id=question.question_id, choice=name, by="ada", answered_at=at)


# ── worlds ──────────────────────────────────────────────────────────────────────────────────────────

PRINTS = st.sampled_from([None, "f1", "f2"])
SOURCES = st.builds(
    SourceCheck, key=st.sampled_from("abc"), name=st.just("orders.csv"), expected=PRINTS, found=PRINTS,
    readers=st.lists(st.sampled_from(STEPS), max_size=2), writer=st.sampled_from([None, *STEPS]),
    can_put_back=st.booleans(),
)  # fmt: skip
VERSIONS = st.builds(
    VersionCheck, path=st.sampled_from(["", *STEPS]), old=st.just({"code": "1"}), new=st.just({"code": "2"})
)
LOOKUPS = st.dictionaries(st.sampled_from(EFFECTS), st.sampled_from([Found("x"), NotFound(), CannotTell("busy")]))
WORLDS = st.builds(
    World,
    at=st.just(format_time(START)),
    run_id=st.just("r"),
    refusal=st.sampled_from(
        [*[None] * 9, CorruptRecord(run_id="r", record="record 3", reason="its seal does not hold")]
    ),
    went_back_to=st.sampled_from([*[None] * 4, 3]),
    witnessed=st.integers(5, 9),
    cancel=st.sampled_from([*[None] * 3, CancelRow("r", "ada", format_time(START), "not needed")]),
    sources=st.none() | st.just([]) | st.lists(SOURCES, max_size=3),
    has_put_back=st.booleans(),
    lookups=st.none() | LOOKUPS,
    versions=st.none() | st.lists(VERSIONS, max_size=2),
    ask_on_version_change=st.booleans(),
    limits=st.sampled_from([*[None] * 3, Limits(resumes=2, same_error=2), Limits(wall=timedelta(minutes=9), cost=3)]),
)
GIVEN = st.lists(st.sampled_from(["keep", "stop", "applied", "again", "accept", "nonsense"]), max_size=3)


def with_answers(s: Snapshot, world: World, given: Sequence[str]) -> World:
    rows = {
        q.question_id: [AnswerRow(q.question_id, "r", choice, "ada", world.at)]
        for q, choice in zip(s.questions.values(), given, strict=False)
    }
    world.answers = rows
    return world


@given(LINES, WORLDS, GIVEN)
def test_every_snapshot_and_world_has_exactly_one_decision_always_the_same(
    lines: Any, world: World, given_answers: list[str]
) -> None:
    """Predictable before anything else: whoever reads `--check` must know what a resume will do."""
    s = journal(lines)
    world = with_answers(s, world, given_answers)
    before = copy.deepcopy((s, world.answers, world.sources, world.lookups, world.versions))
    first, second = decide(s, world), decide(s, world)
    assert type(first) in DECISIONS
    assert repr(first) == repr(second)
    assert repr((s, world.answers, world.sources, world.lookups, world.versions)) == repr(before)


@given(LINES, WORLDS)
def test_the_same_journal_folds_to_the_same_decision(lines: Any, world: World) -> None:
    """The process that wrote the records and the one that reads them agree."""
    assert repr(decide(journal(lines), world)) == repr(decide(journal(lines), world))


@given(LINES, WORLDS)
def test_check_has_a_line_for_every_rule_whatever_was_found(lines: Any, world: World) -> None:
    found = findings(journal(lines), world)
    assert [line.number for line in found] == [1, 2, 3, 4, 5, 6]
    assert all(line.found for line in found)


@given(LINES, WORLDS, GIVEN)
def test_a_refusal_goes_before_everything_and_an_open_question_before_the_plan(
    lines: Any, world: World, given_answers: list[str]
) -> None:
    s = journal(lines)
    decision = decide(s, with_answers(s, world, given_answers))
    if world.refusal is not None:
        assert isinstance(decision, rules.Refuse)
    if isinstance(decision, rules.Continue):
        assert not s.questions
        assert s.cancel is None
        assert not s.stopped
        assert s.status not in m.ENDED


@given(LINES, WORLDS)
def test_deciding_and_acting_comes_to_an_end(lines: Any, world: World) -> None:
    """Every decision that is carried out brings the run nearer to the plan, to a person, or to its end."""
    s = journal(lines)
    for _ in range(60):
        decision = decide(s, world)
        if not act(s, world, decision):
            return
    raise AssertionError(f"still deciding: {decision}")


def act(s: Snapshot, w: World, decision: rules.Decision) -> bool:
    """Carry out a decision as the journey does; False when the journey would leave or go on with the plan."""
    match decision:
        case rules.LookAtSources():
            w.sources = []
        case rules.PutBack():
            w.sources, w.has_put_back = None, True
        case rules.LookUpIntents(intents=intents):
            w.lookups = {state.path: NotFound() for state, _ in intents}
        case rules.LookAtVersions() | rules.NoteVersions():
            w.versions = []
        case rules.SettleIntent(effect=state):
            assert state.last is not None
            attempt, said = state.last.intent.attempt, state.answer
            outcome = "rejected" if said is not None and said.choice == "not-applied" else "applied"
            fold_record(s, m.OutcomeRecorded(
                at=w.at, path=state.path, attempt=attempt, key="k", outcome=outcome, recovered=True
            ))  # fmt: skip
        case rules.EnterCancel():
            fold_record(s, m.CancelEntered(at=w.at, by="ada"))
        case rules.End(status=status):
            fold_record(s, m.RunEnded(at=w.at, status=status))
        case _:
            return False
    return True


# ── attempts ────────────────────────────────────────────────────────────────────────────────────────


class Asked(Exception):
    """The protocol asked a person."""


class Died(Exception):
    """The process died."""


def work(number: int) -> int:
    return number


ENDS = st.lists(st.sampled_from(["fails", "other", "dies", "done"]), min_size=1, max_size=30)
"""How the bodies end, one after another: by an exception the policy names, by another, with their process, well."""
POLICIES = st.none() | st.builds(
    Retry,
    on=st.just(KeyError),
    attempts=st.integers(1, 5),
    deadline=st.none() | st.integers(0, 600).map(lambda s: timedelta(seconds=s)),
    then=st.sampled_from(["ask", "raise"]),
)


@task
def t() -> int:
    return 1


class Going:
    """The run of the machine's one call."""

    run_id, task, lease_s, promoted = "r", t.spec, 30.0, None


class Machine:
    """Carries out the protocol of one step without a store: folds what is appended, plays how the bodies end."""

    def __init__(self, retry: Retry | None, ends: list[str]) -> None:
        self.spec = step_spec(work, retry=retry)
        self.ends = ends
        self.at = START
        self.snapshot = Snapshot()
        self.starts = 0
        fold_record(self.snapshot, started())

    def journey(self) -> None:
        call: Call[Any] = Call(
            spec=self.spec, path="work", branch=False, bound={"number": 1}, encoded=b'{"number":1}', fingerprint="i",
            item_key=None, run=Going(), snapshot=self.snapshot,
        )  # fmt: skip
        protocol = step(call)
        reply: Any = None
        while True:
            try:
                op = protocol.send(reply)
            except StopIteration:
                return
            reply = self.carry_out(op)

    def carry_out(self, op: Op) -> Any:
        if isinstance(op, Now):
            return Moment(self.at, format_time(self.at), 0.0)
        if isinstance(op, Append):
            for record in op.records:
                fold_record(self.snapshot, record)
        if isinstance(op, Wait):
            self.at = max(self.at, datetime.fromisoformat(op.until))
        if isinstance(op, Ask):
            fold_record(self.snapshot, op.question)
            raise Asked
        if isinstance(op, Load):
            return b"1"
        return self.body() if isinstance(op, Body) else None

    def body(self) -> Ended:
        self.starts += 1
        end = self.ends.pop(0) if self.ends else "done"
        if end == "dies":
            raise Died
        errors: dict[str, Exception] = {"fails": KeyError("x"), "other": ValueError("x")}
        return Ended(value=1, error=errors.get(end))


@given(POLICIES, ENDS)
def test_attempts_never_pass_the_policy(retry: Retry | None, ends: list[str]) -> None:
    """Not by deaths, not by failures, not by any mixture: then a person is asked, or the plan is told."""
    machine = Machine(retry, ends)
    allowed = retry.attempts if retry is not None else STARTS_MAX
    for _ in range(40):
        try:
            machine.journey()
            break
        except Asked:
            break
        except Exception:  # it failed or died: the next process goes on
            number = machine.snapshot.resumes + 1
            fold_record(machine.snapshot, m.RunResumed(at=format_time(machine.at), number=number, token=2, holder={}))
    assert machine.starts <= allowed


@given(POLICIES, ENDS)
def test_a_person_who_says_again_allows_as_many_once_more(retry: Retry | None, ends: list[str]) -> None:
    machine = Machine(retry, ends)
    allowed = retry.attempts if retry is not None else STARTS_MAX
    times_allowed = 1
    for _ in range(80):
        try:
            machine.journey()
            break
        except Asked:
            question = next(iter(machine.snapshot.questions.values()))
            assert question.choices == CHOICES[m.QuestionKind.ATTEMPTS_USED]
            fold_record(machine.snapshot, answer(format_time(machine.at), question, 0))
            times_allowed += 1
        except Exception:
            continue
    assert machine.starts <= allowed * times_allowed

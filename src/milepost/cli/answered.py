"""What an effect would have returned, as a person gives it: checked against the effect's own type when it is asked.

The task is imported for that, not run; one that cannot be imported leaves the check to the resume. Called by `answer`.
"""

from __future__ import annotations

from milepost.cli.recorded import recorded_task
from milepost.errors import AnswerRefused, MilepostError, NotDecodable
from milepost.protocol.spec import EffectSpec
from milepost.records.annotations import function_annotations
from milepost.records.canonical import parse
from milepost.runtime.opening import read_snapshot
from milepost.runtime.registry import spec_of
from milepost.stores.contract import QuestionRow, Store
from milepost.views.opened import seal_key

NOTHING = "null"
"""The result of an effect that returns nothing, as JSON."""


def checked_result(store: Store, row: QuestionRow, result: str | None) -> str | None:
    """Return the result to record: the given one if it fits, null for an effect that returns nothing.

    Raises: AnswerRefused when it is no value of the effect's type.
    """
    spec = _effect(store, row)
    if spec is None or (result is not None and not _is_json(result)):
        return result  # what is no JSON is refused where the answer is written
    if result is None:
        return NOTHING if _returns_nothing(spec) else None
    try:
        spec.output.decode(result.encode("utf-8"), "application/json")
    except NotDecodable as error:
        reason = f"the result does not fit {row.path}, at {error.path}: expected {error.expected}, found {error.found}"
        raise AnswerRefused(question_id=row.question_id, reason=reason) from None
    return result


def _effect(store: Store, row: QuestionRow) -> EffectSpec | None:
    try:
        opened = read_snapshot(store, row.run_id, seal_key())
        recorded_task(store, opened)
    except MilepostError:
        return None
    state = opened.snapshot.effects.get(row.path)
    noted = None if state is None else state.shadowed or (state.last.intent if state.last is not None else None)
    spec = spec_of(row.path, noted.versions if noted is not None else {})
    return spec if isinstance(spec, EffectSpec) else None


def _returns_nothing(spec: EffectSpec) -> bool:
    hints = function_annotations(spec.function, where=f"effect {spec.name}")
    return hints.get("return", ...) in (None, type(None))


def _is_json(text: str) -> bool:
    try:
        parse(text.encode("utf-8"))
    except ValueError:
        return False
    return True

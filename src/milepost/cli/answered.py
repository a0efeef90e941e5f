"""What a person gives with an answer, a result or an edited request: checked against the effect's own types.

The task is imported for that, not run, and in a process of its own: its code is not let into the one that records what
a person decided. A task that cannot be imported leaves the check to the resume. Called by `answer`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from milepost.cli.recorded import recorded_task
from milepost.errors import AnswerRefused, MilepostError, NotDecodable
from milepost.protocol.request import as_edited, watched_paths
from milepost.protocol.spec import EffectSpec
from milepost.records.annotations import function_annotations
from milepost.records.canonical import canonical, parse
from milepost.runtime.answering import NOTHING, asked, believed, refuse_absent
from milepost.runtime.children import nobody_answers
from milepost.runtime.opening import read_snapshot
from milepost.runtime.registry import spec_of
from milepost.stores.contract import QuestionRow, Store
from milepost.views.evidence import evidence_of
from milepost.views.opened import seal_key

CHECK_S = 60.0
"""Seconds the process may take that imports a task."""
ARGUMENT_LENGTH_MAX = 60_000
"""Characters that are handed to it; what is longer is checked by the resume."""


def checked_apart(
    store: Store, row: QuestionRow, choice: str, given: Mapping[str, str | None]
) -> tuple[str | None, tuple[str, ...]]:
    """Return the given result, or null for an effect that returns nothing, and the paths in a request.

    Of the paths, only those that the person wrote are believed where the answer is written.
    Raises: AnswerRefused when what is given does not fit the effect.
    """
    options = [f"--{name}={value}" for name, value in given.items() if value is not None]
    if sum(map(len, options)) > ARGUMENT_LENGTH_MAX:
        return given["result"], ()
    command = [sys.executable, "-m", "milepost", "answer", "--check", "--json", *options, "--", row.question_id, choice]
    environ = {
        **os.environ,
        "MILEPOST_STORE": store.location,
        **nobody_answers("the check of an answer"),
    }
    try:
        done = subprocess.run(
            command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=CHECK_S, check=False
        )
        found = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        found = None
    return believed(row.question_id, given["result"], found)


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


def checked_request(store: Store, row: QuestionRow, request: str | None) -> list[str]:
    """Check an edited request against the effect as it is declared; return the paths in it, each of which is there.

    Raises: AnswerRefused when it cannot be sent.
    """
    if request is None or not _is_json(request):
        return []  # refused where the answer is written
    evidence = evidence_of(store, row)
    spec = _effect(store, row, evidence["binding"]["versions"])
    if spec is None:
        return []
    planned = spec.arguments.decode(canonical(evidence["request"]["arguments"]))
    found = as_edited(spec, asked(row).about["item_key"], planned, request.encode("utf-8"))
    if isinstance(found, str):
        raise AnswerRefused(question_id=row.question_id, reason=f"the request does not fit {row.path}: {found}")
    paths = watched_paths(spec, found.bound)
    refuse_absent(row.question_id, paths)
    return paths


def _effect(store: Store, row: QuestionRow, versions: Mapping[str, Any] | None = None) -> EffectSpec | None:
    """Return the effect a question is about, by the versions it was asked with, or those of its newest record."""
    try:
        opened = read_snapshot(store, row.run_id, seal_key())
        recorded_task(store, opened)
    except MilepostError:
        return None
    state = opened.snapshot.effects.get(row.path)
    noted = None if state is None else state.shadowed or (state.last.intent if state.last is not None else None)
    spec = spec_of(row.path, versions or (noted.versions if noted is not None else {}))
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

"""People who answer in tests of approvals, each through the one door that all doors come through."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from desk import Desk

from milepost.records.identity import Identity
from milepost.records.rows import AnswerRow
from milepost.records.times import format_time
from milepost.runtime.answering import answer_question
from milepost.stores.contract import QuestionRow

ADA = Identity("ada@office", ("finance",))
BOB = Identity("bob@office", ("finance", "it"))
EVE = Identity("eve@elsewhere", ("guests",))


def says(
    desk: Desk,
    who: Identity,
    choice: str,
    *,
    of: QuestionRow | None = None,
    request: Any = None,
    paths: Sequence[Path] = (),
) -> AnswerRow:
    """Let somebody answer the one open question (or this one); `paths` are the files that a request names."""
    return answer_question(
        desk.store,
        (of or desk.question).question_id,
        choice,
        by=who,
        seal_key=desk.seal_key,
        at=format_time(desk.clock.now()),
        note="looked into it",
        request=None if request is None else json.dumps(request),
        paths=[str(path) for path in paths],
    )

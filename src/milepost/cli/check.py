"""`resume --check`: the six rules and what each found, for people and as JSON. Changes nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict

from milepost.cli.load import AnyTask
from milepost.cli.output import emit, only_results_on_stdout, table
from milepost.errors import QuestionError, RefusedError
from milepost.protocol.decide import World
from milepost.protocol.findings import Finding, findings
from milepost.runtime.active import RunOptions
from milepost.runtime.check import check_run
from milepost.runtime.opening import Opened
from milepost.stores.contract import Store
from milepost.views.opened import now_text, seal_key


def check(task: AnyTask, run_id: str, store: Store, *, as_json: bool) -> int:
    """Print the findings; return 3 when a resume would be refused, 4 when it would ask, else 0."""
    options = RunOptions(store=store, seal_key=seal_key(), environ=dict(os.environ))
    with only_results_on_stdout():
        found = check_run(task.spec, run_id, store, options)
    return _tell(run_id, found, as_json=as_json)


def check_refused(opened: Opened, *, as_json: bool) -> int:
    """Print the findings about a run that cannot be trusted; none of its code is imported."""
    run_id = opened.row.run_id
    found = findings(opened.snapshot, World(at=now_text(), run_id=run_id, refusal=opened.refusal))
    return _tell(run_id, found, as_json=as_json)


def _tell(run_id: str, found: Sequence[Finding], *, as_json: bool) -> int:
    """Print what each rule found and return the exit status it stands for."""
    if as_json:
        emit({"run_id": run_id, "findings": [asdict(finding) for finding in found]})
    else:
        table(("", "rule", "state", "found"), [(f.number, f.rule, f.state, f.found) for f in found])
    states = {finding.state for finding in found}
    if "refuse" in states:
        return RefusedError.exit_status
    return QuestionError.exit_status if "ask" in states else 0

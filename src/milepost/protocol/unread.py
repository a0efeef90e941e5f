"""The start of a step that nobody reads, for the checkpoint right behind it says again what it says. Pure.

Half of what a resume would read are such starts. Only the inputs stand in them alone: `StepState.inputs` reads them
when they are asked for. Called by the opening of a run, which has checked the seal.
"""

from __future__ import annotations

from milepost.protocol.snapshot import Snapshot
from milepost.records.written import is_start_of


def fold_start_unread(s: Snapshot, start: bytes, path: str, inputs_fingerprint: str) -> bool:
    """Fold in a step's first start from the checkpoint that follows; False when it is another, or not the first."""
    if path in s.steps or not is_start_of(start, path, inputs_fingerprint):
        return False
    s.record_count += 1
    state = s.step_state(path)
    state.starts, state.counted, state.unread_start = 1, True, start
    s.act_on(s.approvals, path)
    return True

"""What a body is expected to call again: what was finished or sent in it before the plan began (rule 5 of a resume).

It stands until it is called. Which of it a call without record may be is said here; whether to ask, the protocol says.
Called by `scope`, as bodies begin, call and end, and by `perform`. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from milepost.protocol.call import Call
from milepost.protocol.snapshot import Snapshot
from milepost.protocol.spec import EffectSpec, StepSpec, own_versions
from milepost.records.naming import body_of
from milepost.runtime.registry import spec_of


class Expected:
    """What stands in one body and was not called again yet: `left`, path -> called on the body's own line."""

    __slots__ = ("_around", "_call", "_s", "left")

    def __init__(self, s: Snapshot, left: dict[str, bool], call: Call[Any] | None, around: Expected | None) -> None:
        self._s, self.left = s, left
        self._call, self._around = call, around  # the call whose body it is, and the body that made it

    def unclaimed(self, call: Call[Any]) -> tuple[str, ...]:
        """Return what stands on the body's own line, for a call there without a record.

        A fork keeps what was sent after its step, and not the steps there: none of those is new to the plan.
        """
        s, path = self._s, call.path
        if call.branch or path in s.steps or path in s.effects or path in s.approvals or path in s.declined:
            return ()
        forked = s.started is not None and s.started.forked_from is not None and isinstance(call.spec, StepSpec)
        return tuple(p for p, own_line in self.left.items() if own_line and not (forked and p in s.effects))

    def near(self) -> list[tuple[str, bool]]:
        """Return what stands on whatever line: in this body, and around it as long as it is a step that sent nothing.

        True: a person accepted such a step in between, and answered so for what stood around it.
        """
        is_accepted = False
        found = [(path, False) for path in list(self.left)]
        body: Expected = self
        while body._call is not None and body._around is not None and not body._call.stood:
            is_accepted = is_accepted or body._call.is_accepted
            body = body._around
            found += ((path, is_accepted) for path in list(body.left))
        return found

    def outstanding(self, call: Call[Any], request_digest: str) -> list[str]:
        """Return what an effect without record may be where no order tells."""
        if call.path in self._s.declined:
            return []  # no record of a send, and known all the same
        near = [(path, is_accepted) for path, is_accepted in self.near() if path not in call.unclaimed]
        return [path for path, is_accepted in near if self._may_be(path, request_digest, is_accepted)]

    def _may_be(self, path: str, request_digest: str, is_accepted: bool) -> bool:
        """Say whether what stands under this path may bear another name now.

        It is in doubt and only a person can tell, it sent just this, or the code is another and nobody accepted that.
        """
        s = self._s
        is_in_doubt = bool(s.left_open_in(path))
        if not is_in_doubt and (path in s.accepted_plan or s.redoes(path) or path in s.declined):
            return False
        if is_in_doubt and not _keeps_its_key(s, path):
            return True
        if s.sent_as(path, request_digest):
            return True
        return not is_accepted and (s.is_older_than_code(path) or not _is_declared(s, path))

    def uncalled(self) -> tuple[str, ...]:
        """Return what the body, having returned, did not call again; what is in doubt is asked about as such.

        While redoing only effects count: a step that is no longer called leaves nothing outside.
        """
        s = self._s
        missed = [path for path in self.left if path not in s.accepted_plan]
        missed = [path for path in missed if s.is_finished(path) or s.holds_applied(path)]
        return tuple(path for path in missed if path in s.effects or not s.redoes(path))


def _is_declared(s: Snapshot, path: str) -> bool:
    """Say whether the code still declares an effect as it was when it was last sent."""
    state = s.effects.get(path)
    if state is None or state.last is None:
        return True
    versions = state.last.intent.versions
    spec = spec_of(path, versions)
    return spec is not None and own_versions(spec.versions) == own_versions(versions)


def _keeps_its_key(s: Snapshot, path: str) -> bool:
    """Say whether an effect that is in doubt is sent again with its key when the plan comes to it, asking nobody."""
    state = s.effects.get(path)
    spec = spec_of(path, state.last.intent.versions) if state is not None and state.last is not None else None
    return isinstance(spec, EffectSpec) and spec.key_lifetime is not None


def stands_in(s: Snapshot, path: str, sent: Mapping[str, None]) -> dict[str, bool]:
    """Return what was finished, declined or sent in a body, in order: path -> called on its own line.

    `sent` is that of `sent_by_body`: of a step that a fork does not keep nothing else is known, not its line either.
    """
    found: dict[str, bool] = {}
    for child in s.children.get(path, ()):
        state = s.steps.get(child) or s.effects.get(child)
        if state is not None and (state.finished or child in sent):
            found[child] = not state.branch
    for child in sent:
        found.setdefault(child, False)
    for child, declined in s.declined.items():
        if child not in found and body_of(child) == path:
            found[child] = declined.question.about.get("own_line", False)
    return found


def sent_by_body(s: Snapshot) -> dict[str, dict[str, None]]:
    """Return what was applied or left in doubt: by body, its effects, and its steps that have such an effect inside."""
    found: dict[str, dict[str, None]] = {}
    for path, state in s.effects.items():
        if not state.arrived:
            continue
        while path:
            body = body_of(path)
            if path in found.setdefault(body, {}):
                break
            found[body][path] = None
            path = body
    return found

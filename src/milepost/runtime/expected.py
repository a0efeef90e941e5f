"""What a body is expected to call again: what was finished or sent in it before the plan began (rule 5 of a resume).

It stands until it is called. Which of it a call without record may be is said here; whether to ask, the protocol says.
Called by `scope`, as bodies begin, call and end, and by `perform`. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from milepost.protocol.call import Call
from milepost.protocol.snapshot import Snapshot
from milepost.protocol.spec import StepSpec, own_versions
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

    def near(self) -> list[str]:
        """Return what stands on whatever line: in this body, and around it as long as it is a step that sent nothing.

        A person who accepted such a step in the changed plan answered for what is around it, save for what is in doubt.
        """
        found, is_accepted = list(self.left), False
        body: Expected = self
        while body._call is not None and body._around is not None and not body._call.stood:
            is_accepted = is_accepted or body._call.is_accepted
            body = body._around
            found += (p for p in list(body.left) if not is_accepted or self._s.left_open_in(p))
        return found

    def outstanding(self, call: Call[Any], request_digest: str) -> list[str]:
        """Return what an effect without record may be where no order tells."""
        standing = [path for path in self.near() if path not in call.unclaimed]
        return [path for path in standing if self._may_be(path, call.spec.name, request_digest)]

    def _may_be(self, path: str, effect: str, request_digest: str) -> bool:
        """Say whether what stands under this path may bear another name now.

        It is in doubt, the code is another, or it sent just this: then it is what makes its `key=` that changed.
        """
        s = self._s
        if s.left_open_in(path):
            return True
        if path in s.accepted_plan or s.redoes(path) or path in s.declined:
            return False
        return s.is_older_than_code(path) or not _is_declared(s, path) or s.sent_as(path, effect, request_digest)

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
        if state.applied is None and state.left_open is None:
            continue
        while path:
            body = body_of(path)
            if path in found.setdefault(body, {}):
                break
            found[body][path] = None
            path = body
    return found

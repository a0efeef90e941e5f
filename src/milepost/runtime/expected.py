"""What a body is expected to call again: what was finished or sent in it before the plan began (rule 5 of a resume).

It stands until it is called. Which of it a call without record may be is said here; whether to ask, the protocol says.
Called by `scope`, as bodies begin, call and end, and by `perform`. Writes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from milepost.protocol.snapshot import Snapshot
from milepost.protocol.spec import StepSpec, own_versions
from milepost.records.naming import body_of
from milepost.runtime.registry import spec_of

if TYPE_CHECKING:
    from milepost.runtime.active import ActiveRun
    from milepost.runtime.scope import RuntimeCall, Scope


def stands_in(run: ActiveRun, path: str) -> dict[str, bool]:
    """Return what was finished, declined or sent in a body, in order: path -> called on its own line.

    That is what was sent by effects inside of its steps, too: of a step that a fork does not keep nothing else is
    known, and not the line it was called on.
    """
    found: dict[str, bool] = {}
    s = run.snapshot
    if path in run.unread:
        run.journal.load_chain(path)
    sent = run.sent_in.get(path, {})
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


def unclaimed(call: RuntimeCall) -> tuple[str, ...]:
    """Return what stands on the body's own line and is not called yet, for a call there without a record.

    A fork keeps what was sent after its step, and not the steps there: none of those is new to the plan.
    """
    s, path = call.snapshot, call.path
    if call.branch or path in s.steps or path in s.effects or path in s.approvals or path in s.declined:
        return ()
    forked = s.started is not None and s.started.forked_from is not None and isinstance(call.spec, StepSpec)
    return tuple(p for p, own_line in call.scope.expected.items() if own_line and not (forked and p in s.effects))


def around(scope: Scope) -> list[str]:
    """Return what stands and was not called yet, on whatever line: in a body, and around steps that sent nothing.

    A person who accepted such a step in the changed plan answered for what is around it, save for what is in doubt.
    """
    found, is_accepted = list(scope.expected), False
    while scope.call is not None and not scope.call.stood:
        is_accepted = is_accepted or scope.call.is_accepted
        scope = scope.call.scope
        found += (p for p in scope.expected if not is_accepted or scope.run.snapshot.left_open_in(p))
    return found


def outstanding(call: RuntimeCall) -> list[str]:
    """Return what an effect without record may be, where no order tells, and what was not called yet."""
    run = call.scope.run
    with run.lock:
        standing = around(call.scope)
    return [path for path in standing if path not in call.unclaimed and _may_be_another(run, path)]


def _may_be_another(run: ActiveRun, path: str) -> bool:
    """Say whether what stands under this path may bear another name now: it is in doubt, or the code is another.

    That is what shows of itself: an undecorated function, and what makes a `key=`, are not looked at.
    """
    s = run.snapshot
    if s.left_open_in(path):
        return True
    if path in s.accepted_plan or s.redoes(path) or path in s.declined:
        return False
    return s.is_older_than_code(path) or not _is_declared(s, path)


def _is_declared(s: Snapshot, path: str) -> bool:
    """Say whether the code still declares an effect as it was when it was last sent."""
    state = s.effects.get(path)
    if state is None or state.last is None:
        return True
    versions = state.last.intent.versions
    spec = spec_of(path, versions)
    return spec is not None and own_versions(spec.versions) == own_versions(versions)


def uncalled(scope: Scope) -> tuple[str, ...]:
    """Return what stands and a body, having returned, did not call again; what is in doubt is asked about as such.

    While redoing only effects count: a step that is no longer called leaves nothing outside.
    """
    if not scope.expected:
        return ()
    s = scope.run.snapshot
    missed = (path for path in scope.expected if path not in s.accepted_plan)
    missed = (path for path in missed if s.is_finished(path) or s.holds_applied(path))
    return tuple(path for path in missed if path in s.effects or not s.redoes(path))

"""A step that people must allow: to start, before its body runs; to stand, before its checkpoint. Pure.

The rule is `approval`'s; here is what it is about: a step's arguments, or its output as it was kept. Called by `step`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from milepost.protocol.approval import Matter, allowed, ask_ahead, rule_of
from milepost.protocol.approving import Approving
from milepost.protocol.call import Call
from milepost.protocol.keep import JSON
from milepost.protocol.manifest import entries_in
from milepost.protocol.ops import Load, Observe, Steps
from milepost.protocol.request import Exact, exact_request
from milepost.protocol.spec import StepSpec
from milepost.records.canonical import Json, canonical, digest, parse
from milepost.records.model import Pointer
from milepost.records.paths import find_paths

FILES_SHOWN_MAX = 20
"""Files of an output whose text the evidence shows."""
TEXT_SHOWN_MAX = 4000
"""Bytes of an output that is no JSON which the evidence shows; the whole is an artifact of its digest."""


def live_rule(call: Call[StepSpec], when: str) -> Approving | None:
    """Return the rule a step stands under; None when it has none, and in a shadow run, where nobody is asked."""
    return None if call.snapshot.is_shadow else rule_of(call, when)


def may_start(call: Call[StepSpec]) -> Steps[None]:
    """Go on when people allowed the step to start with these arguments, else ask. Raises: Declined."""
    rule = live_rule(call, "before")
    if rule is not None:
        yield from allowed(call, (yield from _start(call, rule)))


def step_ahead(call: Call[StepSpec]) -> Steps[None]:
    """Ask whether one of many calls may start, as far as nothing else has to be settled before.

    Crash: asked or not asked; what is not asked yet is asked by the next resume.
    """
    state, rule = call.step, live_rule(call, "before")
    is_new = state is None and not call.unclaimed
    if rule is not None and (is_new or (state is not None and not state.finished and state.kept is None)):
        yield from ask_ahead(call, (yield from _start(call, rule)))


def _output(output: Pointer, value: Any) -> Steps[Exact]:
    paths = [{"kind": "path", "path": str(path)} for _, path in find_paths(value)]
    if not paths:
        return Exact(canonical({"output": output.to_json()}), output.digest, output.digest)
    found = yield Observe(paths)
    files: list[Json] = [{"path": o.descriptor["path"], "fingerprint": o.fingerprint} for o in found]
    data = canonical({"output": output.to_json(), "files": files})
    return Exact(data, digest(data), digest(data))


def may_stand(call: Call[StepSpec], rule: Approving, output: Pointer, value: Any, files: Pointer | None) -> Steps[None]:
    """Go on when people allowed the output to stand, else ask. Raises: Declined.

    The output is kept already, so that a resume after the answer does not repeat the body. One who says redo reopens
    the step, and does not come here again before there is another output. What lies in its files is looked at each
    time: it is part of what was approved.
    """
    data: bytes = yield Load(output, f"output of {call.path}")
    shown: dict[str, Json] = {"step": call.path, "arguments": parse(call.encoded), "output": _shown(data, output)}
    if files is not None:
        shown["files"] = yield from _files_shown(call, files)
    exact = yield from _output(output, value)
    head = f"The output of {call.path} passed its checks and waits for a review"
    yield from allowed(call, Matter("after", rule, exact, shown, ("edit",), head))


def _start(call: Call[StepSpec], rule: Approving) -> Steps[Matter]:
    exact = yield from exact_request(call)
    return Matter("before", rule, exact, {"step": call.path}, ("edit", "redo"), f"{call.path} is to be started")


def _files_shown(call: Call[StepSpec], files: Pointer) -> Steps[list[Json]]:
    """Return the files of an output with what short texts among the first say: a review is of that, not of names."""
    entries: list[Json] = []
    for entry in (yield from entries_in(files, f"files of {call.path}")):
        shown = dict(entry)
        if len(entries) < FILES_SHOWN_MAX and entry.get("size", TEXT_SHOWN_MAX + 1) <= TEXT_SHOWN_MAX:
            pointer = Pointer(*(entry[name] for name in ("digest", "size", "media_type", "where")))
            data: bytes = yield Load(pointer, f"{entry['path']} of {call.path}")
            with suppress(UnicodeDecodeError):
                shown["content"] = data.decode("utf-8")
        entries.append(shown)
    return entries


def _shown(data: bytes, output: Pointer) -> Any:
    if output.media_type == JSON:
        return parse(data)
    text = data[:TEXT_SHOWN_MAX].decode("utf-8", "replace")
    if output.media_type.startswith("text/") and len(data) <= TEXT_SHOWN_MAX:
        return text
    return {"media_type": output.media_type, "size": output.size, "digest": output.digest, "begins": text}

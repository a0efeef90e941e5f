"""What a step read, wrote and returned: each with its fingerprint, in one manifest beside the checkpoint. Pure.

The records inside a verified step no longer count, so its manifest carries what theirs list. Called by `step`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from milepost.errors import SourceChangedMeanwhile
from milepost.protocol.call import Call
from milepost.protocol.keep import keep_contents, keep_manifest
from milepost.protocol.ops import Artifact, Load, Observe, Steps
from milepost.protocol.questions import short
from milepost.protocol.spec import StepSpec
from milepost.protocol.state import StepState
from milepost.records.canonical import parse
from milepost.records.model import OutputRecorded, Pointer, StepVerified
from milepost.records.paths import find_paths

Entries = list[Any]


def keep_manifests(
    call: Call[StepSpec], before: Sequence[Any], value: Any, artifacts: list[Artifact]
) -> Steps[tuple[Pointer | None, Pointer | None]]:
    """Keep the files of an output and the list of sources; return the pointers to both manifests.

    Raises: SourceChangedMeanwhile when what the step was given is no longer what it was before the body.
    """
    inner = _inner(call)
    if not (inner or before or call.spec.writes or call.spec.output.holds_paths):
        return None, None
    files = yield from keep_contents(value, artifacts)
    sources = yield from _observed(call, before, files)
    for checkpoint in reversed(inner):
        sources[:0] = yield from entries_in(checkpoint.sources, f"sources of {checkpoint.path}")
        files[:0] = yield from entries_in(checkpoint.files, f"files of {checkpoint.path}")
    return (yield from _kept(files, sources, artifacts))


def manifests_now(
    call: Call[StepSpec], state: StepState, kept: OutputRecorded, value: Any, artifacts: list[Artifact]
) -> Steps[tuple[Pointer | None, Pointer | None]]:
    """Return the manifests of an output that was kept before; made anew where a person said to keep what is there now.

    Crash: as `keep_bytes`; the output was kept with what it was.
    """
    entries = yield from entries_in(kept.sources, f"sources of {call.path}")
    found = (yield Observe([entry["descriptor"] for entry in entries])) if entries else []
    pairs = list(zip(entries, found, strict=True))
    changed = [new for old, new in pairs if old["fingerprint"] != new.fingerprint]
    said = {now for order, now in call.snapshot.accepted_sources.values() if order >= state.kept_order}
    if not changed or not all(new.fingerprint in said for new in changed):
        return kept.files, kept.sources
    gone = {new.descriptor.get("path") for new in changed}
    files = [file for file in (yield from entries_in(kept.files, f"files of {call.path}")) if file["path"] not in gone]
    files += yield from keep_contents(value, artifacts)
    sources = [{"role": old["role"], **new.to_json()} for old, new in pairs]
    return (yield from _kept(files, sources, artifacts))


def _kept(files: Entries, sources: Entries, artifacts: list[Artifact]) -> Steps[tuple[Pointer | None, Pointer | None]]:
    """Keep both lists; of a file that is listed twice what was said last. Crash: as `keep_bytes`."""
    newest = list({file["path"]: file for file in files}.values())
    return (yield from keep_manifest(newest, artifacts)), (yield from keep_manifest(sources, artifacts))


def entries_in(pointer: Pointer | None, what: str) -> Steps[Entries]:
    """Return the entries of a manifest, none without one."""
    if pointer is None:
        return []
    entries: Any = parse((yield Load(pointer, what)))
    return list(entries)


def _inner(call: Call[StepSpec]) -> list[StepVerified]:
    """Return the checkpoints inside this step that list sources, in the order they were made."""
    s = call.snapshot
    if call.path not in s.children:
        return []
    states = [s.steps[path] for path in s.children[call.path] if path in s.steps]
    states.sort(key=lambda state: state.verified_order)
    return [found for state in states if (found := state.verified) is not None and found.sources is not None]


def _observed(call: Call[StepSpec], before: Sequence[Any], files: Entries) -> Steps[Entries]:
    """Look at what the step read, wrote and returned; refuse what changed under its hands."""
    after = (yield Observe([o.descriptor for o in before])) if before else []
    for old, new in zip(before, after, strict=True):
        if old.fingerprint != new.fingerprint:
            before_it, after_it = short(old.fingerprint), short(new.fingerprint)
            raise SourceChangedMeanwhile(path=call.path, source=_name(new), before=before_it, after=after_it)
    writes = _written(call)
    written = (yield Observe(writes)) if writes else []
    returned = [{"path": f["path"], "kind": f["kind"]} for f in files]
    observed = (yield Observe(returned)) if returned else []
    by_role = (("read", after), ("write", written), ("output", observed))
    return [{"role": role, **o.to_json()} for role, observations in by_role for o in observations]


def _written(call: Call[StepSpec]) -> Entries:
    paths = [path for name in call.spec.writes for _, path in find_paths(call.bound.get(name))]
    return [{"kind": "path", "path": str(path)} for path in paths]


def _name(observation: Any) -> str:
    descriptor = observation.descriptor
    return str(descriptor.get("path") or descriptor.get("url") or descriptor.get("query") or descriptor.get("name"))

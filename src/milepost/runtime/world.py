"""What the world says now, for `decide`: sources, versions, what providers know of open intents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from milepost.protocol.decide import SourceCheck
from milepost.protocol.keys import name_in
from milepost.protocol.ops import Load, Observe, Steps
from milepost.protocol.snapshot import Snapshot
from milepost.protocol.spec import WITHIN, compared_versions, label_of, own_versions
from milepost.protocol.versions import VersionCheck
from milepost.records.canonical import parse
from milepost.records.frozen import slotted
from milepost.records.model import OutputRecorded, Pointer, StepVerified
from milepost.runtime.registry import spec_of
from milepost.sources import Observation, changes, key_of, name_of


@slotted
class _Expected:
    observation: Observation
    order: int
    writer: str | None = None
    readers: list[str] = field(default_factory=list)


def check_sources(s: Snapshot) -> Steps[list[SourceCheck]]:
    """Compare what the last record that read, wrote or returned a source says with what is there now.

    Verified ones, and outputs that were kept and still wait for their verification or review.
    """
    expected = yield from _expectations(s)
    if not expected:
        return []
    kept = yield from kept_files(s)
    found = yield Observe([e.observation.descriptor for e in expected.values()])
    return [
        _check(s, key, expectation, now, kept) for (key, expectation), now in zip(expected.items(), found, strict=True)
    ]


def _check(
    s: Snapshot, key: str, expectation: _Expected, now: Observation, kept: Mapping[str, dict[str, Any]]
) -> SourceCheck:
    accepted = s.accepted_sources.get(key)
    fingerprint = expectation.observation.fingerprint
    if accepted is not None and accepted[0] >= expectation.order:
        fingerprint = accepted[1]
    gone = now.fingerprint is None and fingerprint is not None
    return SourceCheck(
        key=key,
        name=name_of(expectation.observation.descriptor),
        expected=fingerprint,
        found=now.fingerprint,
        writer=expectation.writer,
        readers=expectation.readers,
        changes=changes(expectation.observation, now) if now.fingerprint != fingerprint else (),
        can_put_back=gone and kept.get(key, {}).get("fingerprint") == fingerprint,
    )


def _expectations(s: Snapshot) -> Steps[dict[str, _Expected]]:
    """Fold the manifests of what counts, in the order of their checkpoints."""
    found: dict[str, _Expected] = {}
    for path, order, pointer in _manifests(s):
        entries: Any = parse((yield Load(pointer, f"sources of {path or 'the run'}")))
        for entry in entries:
            observation = Observation.from_json({k: v for k, v in entry.items() if k != "role"})
            key = key_of(observation.descriptor)
            before = found.get(key, _Expected(observation, order)) if entry["role"] == "read" else None
            found[key] = _expected(observation, order, path, before)
    return found


def _expected(observation: Observation, order: int, path: str, before: _Expected | None) -> _Expected:
    """Expect what was observed: by a reader, after those `before` it; or by whoever wrote it, which begins anew."""
    if before is None:
        return _Expected(observation, order, path)
    return _Expected(observation, order, before.writer, [*before.readers, path] if path else before.readers)


def _manifests(s: Snapshot) -> list[tuple[str, int, Pointer]]:
    standing = [(path, order, found.sources) for path, order, found in _standing(s) if s.counts(path)]
    started = [("", 0, s.started.sources)] if s.started is not None else []
    listed = [(path, order, pointer) for path, order, pointer in started + standing if pointer is not None]
    return sorted(listed, key=lambda item: item[1])


def _standing(s: Snapshot) -> Iterator[tuple[str, int, StepVerified | OutputRecorded]]:
    """Yield the outputs that were verified or kept and have sources, with how many records were before them."""
    for state in s.steps.values():
        if state.verified is not None and state.verified.sources is not None:
            yield state.path, state.verified_order, state.verified
        elif state.kept is not None and state.kept.sources is not None:
            yield state.path, state.kept_order, state.kept


def kept_files(s: Snapshot) -> Steps[dict[str, dict[str, Any]]]:
    """Return for each source key the newest file entry whose content is an artifact, with its fingerprint."""
    found: dict[str, dict[str, Any]] = {}
    for path, _, output in sorted(_standing(s), key=lambda item: item[1]):
        if output.files is None or output.sources is None:
            continue
        files: Any = parse((yield Load(output.files, f"files of {path}")))
        sources: Any = parse((yield Load(output.sources, f"sources of {path}")))
        fingerprints = {e["descriptor"].get("path"): e["fingerprint"] for e in sources if e["role"] == "output"}
        for entry in files:
            key = key_of({"kind": entry["kind"], "path": entry["path"]})
            found[key] = {**entry, "fingerprint": fingerprints.get(entry["path"])}
    return found


def check_versions(s: Snapshot, now: Mapping[str, str], *, promotion: VersionCheck | None = None) -> list[VersionCheck]:
    """Return the versions that differ: of the task, and of each verified step whose code is declared here.

    `promotion`: in what the task's role is another than the promoted one.
    """
    found = [promotion] if promotion is not None else []
    if dict(s.versions) != dict(now):
        found.append(VersionCheck("", dict(s.versions), dict(now)))
    known: dict[tuple[str, ...], tuple[dict[str, str], dict[str, str]]] = {}
    for path, state in s.steps.items():
        if state.verified is None:
            continue
        recorded = s.step_versions.get(path, state.verified.versions)
        same = (name_in(path), *recorded, *map(str, recorded.values()))  # most steps are of a few kinds
        if same not in known:
            known[same] = _old_and_new(path, recorded)
        old, new = known[same]
        if old and new != old:
            found.append(VersionCheck(path, old, new))
    return found


def _old_and_new(path: str, recorded: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    old = compared_versions(recorded)
    return old, {**_own_now(path, old), **_within_now(old)}


def _own_now(path: str, old: Mapping[str, str]) -> Mapping[str, str]:
    spec = spec_of(path, old)
    return own_versions(old if spec is None else spec.versions)


def _within_now(old: Mapping[str, str]) -> dict[str, str]:
    """Return the versions of the steps inside as they are now; one that is not declared here counts as it was."""
    found: dict[str, str] = {}
    for name, label in old.items():
        if name.startswith(WITHIN):
            spec = spec_of(name.removeprefix(WITHIN), {"code": label.partition(" ")[0]})
            found[name] = label if spec is None else label_of(spec.versions)
    return found

"""The exact request of a call: its arguments and the content of every file among them, or as edited by a person. Pure.

Called by `effect` and `step` before anything is asked or sent, and by the door that takes an edit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from milepost.errors import MilepostError, NotDecodable
from milepost.protocol.call import Call
from milepost.protocol.keys import Key
from milepost.protocol.ops import Load, Observe, Steps
from milepost.protocol.spec import EffectSpec
from milepost.protocol.state import Edit
from milepost.records.canonical import Json, canonical, digest, parse
from milepost.records.frozen import frozen
from milepost.records.paths import find_paths


@frozen
class Exact:
    """The bytes of a request and their digest; `planned` is the digest of what the plan asks for without the edit."""

    data: bytes
    digest: str
    planned: str
    edit: Edit | None = None
    unusable: str = ""  # why an edit that a person made cannot stand
    unseen: tuple[str, ...] = ()  # files of the edit that are not what they were when it was made, in words


@frozen
class Request:
    """The exact request, and the idempotency key it goes out under."""

    exact: Exact
    key: Key

    @property
    def data(self) -> bytes:
        return self.exact.data

    @property
    def digest(self) -> str:
        return self.exact.digest


@frozen
class Edited:
    """Arguments as a person gave them, read back: by parameter, and as they are recorded."""

    bound: dict[str, Any]
    encoded: bytes


def exact_request(call: Call[Any]) -> Steps[Exact]:
    """Fix the exact request of a call. An edit that stands for it takes the place of the plan's arguments."""
    if call.planned is not None:
        call.bound, call.encoded, call.paths = call.planned
    planned_files = yield from _files(call)
    data = written(call.encoded, planned_files)
    planned = digest(data)
    approval = call.snapshot.approvals.get(call.path)
    edit = approval.edit if approval is not None and approval.question.about["planned"] == planned else None
    if edit is None:
        return Exact(data, planned, planned)
    arguments, seen = read_back((yield Load(edit.arguments, f"edited request of {call.path}")))
    edited = as_edited(call.spec, call.item_key, call.bound, arguments)
    if isinstance(edited, str):
        return Exact(data, planned, planned, unusable=f"the edit by {edit.by} cannot be used: {edited}")
    call.planned = (call.bound, call.encoded, call.paths)
    call.bound, call.encoded = edited.bound, edited.encoded
    call.paths = [{"kind": "path", "path": path} for path in watched_paths(call.spec, call.bound)]
    files = yield from _files(call)
    data = written(call.encoded, files)
    return Exact(data, digest(data), planned, edit, unseen=_unseen(files, [*planned_files, *seen], edit.by))


def _unseen(files: Sequence[Mapping[str, Json]], seen: Sequence[Any], by: str) -> tuple[str, ...]:
    """Say which files are not what they were when somebody put them in the place of the plan's, or were not looked at.

    The plan's own are what its question showed: had one changed since, the edit would not be about this request.
    """
    known = {entry.get("path") for entry in seen if isinstance(entry, dict)}
    changed, unseen = f"has changed since {by} named it", f"was not looked at when {by} named it"
    return tuple(f"{f['path']} {changed if f['path'] in known else unseen}" for f in files if f not in seen)


def as_edited(spec: EffectSpec, item_key: str | None, bound: Mapping[str, Any], arguments: bytes) -> Edited | str:
    """Read edited arguments as the effect's own types; a sentence says why they cannot be used.

    `bound` is what the plan gave, with what is not watched and so is not recorded; where nobody has that, `key=` is
    not asked.
    """
    try:
        found = {**bound, **spec.arguments.decode(arguments)}
        encoded = spec.arguments.round_trip(found)
    except NotDecodable as error:
        return f"at {error.path}: expected {error.expected}, found {error.found}"
    except MilepostError as error:
        return str(error)
    is_whole = bound.keys() >= set(spec.arguments.parameters)
    problem = _renamed(spec, item_key, bound, found) if spec.key is not None and is_whole else ""
    return problem or Edited(found, encoded)


def _renamed(spec: EffectSpec, item_key: str | None, bound: Mapping[str, Any], edited: Mapping[str, Any]) -> str:
    """Say when an edit changes what the call is named by: it would be sent under another's name and key.

    `key=` got the arguments as the plan wrote them, perhaps without those that have a default.
    """
    given = {name for name in bound if name not in spec.arguments.defaults}
    for names in (bound.keys(), given, given | {n for n in bound if bound[n] != spec.arguments.defaults.get(n)}):
        if _named(spec, {name: bound[name] for name in bound if name in names}) == item_key:
            named = _named(spec, {name: edited[name] for name in bound if name in names})
            return "" if named == item_key else f"key= of {spec.name} says {named!r} of it, it is about {item_key!r}"
    return f"key= of {spec.name} cannot be asked about it"


def _named(spec: EffectSpec, bound: Mapping[str, Any]) -> str | None:
    """Return what `key=` says of arguments, None when it cannot be asked about them."""
    args, kwargs = spec.arguments.spread(bound)
    assert spec.key is not None
    try:
        return str(spec.key(*args, **kwargs))
    except Exception:  # noqa: BLE001 – the user's key= on arguments the plan never gave it
        return None


def written(encoded: bytes, files: Sequence[dict[str, Json]]) -> bytes:
    """Write a request: its arguments, and the files among them as they are."""
    data = b'{"arguments":' + encoded + b"}"
    return data[:-1] + b',"files":' + canonical([*files]) + b"}" if files else data


def read_back(given: bytes) -> tuple[bytes, list[Any]]:
    """Return what an answer carries for an edit: arguments, and the files among them as they were at the door.

    Where there are none it carries the arguments alone.
    """
    value = parse(given)
    if not isinstance(value, dict) or value.keys() != {"arguments", "files"} or not isinstance(value["files"], list):
        return given, []
    return canonical(value["arguments"]), value["files"]


def watched_paths(spec: EffectSpec, bound: Mapping[str, Any]) -> list[str]:
    """Return the paths among the watched arguments."""
    watched = [bound[name] for name in spec.arguments.watched if name in bound]
    return [str(path) for value in watched for _, path in find_paths(value)]


def _files(call: Call[Any]) -> Steps[list[dict[str, Json]]]:
    """Look at the files among the arguments now."""
    found = (yield Observe(call.paths)) if call.paths else []
    return [{"path": o.descriptor["path"], "fingerprint": o.fingerprint} for o in found]

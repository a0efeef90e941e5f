"""How a record becomes its stored bytes and comes back: JSON, sorted keys, no spaces, absent fields left out.

What is sealed are these bytes, exactly; nothing is encoded again to be checked. Does no I/O.
Called by the runtime, which appends and reads journals.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import MISSING, fields
from operator import attrgetter, itemgetter
from typing import Any

from milepost.records.canonical import encode_text
from milepost.records.model import KINDS, Choice, ErrorRecord, Pointer, Record, StepStarted, StepVerified

_text: Callable[[str], str] = json.encoder.encode_basestring
_NAMES = {cls: sorted(f.name for f in fields(cls)) for cls in KINDS.values()}
_KEYS = {cls: tuple(f'"{name}":' for name in names) for cls, names in _NAMES.items()}
_VALUES: dict[type[Record], Callable[[Record], tuple[Any, ...]]] = {
    cls: attrgetter(*names) for cls, names in _NAMES.items()
}


def encode_record(record: Record) -> bytes:
    """Return the stored bytes of a record: JSON, sorted keys, no spaces, absent fields left out."""
    cls = type(record)
    if cls in _HOT:
        return _HOT[cls](record).encode("utf-8")
    pieces: list[str] = []
    for key, value in zip(_KEYS[cls], _VALUES[cls](record), strict=True):
        kind = type(value)
        if value or kind not in _ABSENT_WHEN_EMPTY:
            pieces.append(key + _WRITE.get(kind, encode_text)(value))
    return ("{" + ",".join(pieces) + "}").encode("utf-8")


def _pointer_text(pointer: Pointer) -> str:
    digest, size, media_type, where = pointer
    return f'{{"digest":{_text(digest)},"media_type":{_text(media_type)},"size":{size},"where":{_text(where)}}}'


_ABSENT_WHEN_EMPTY = frozenset((type(None), bool, str, tuple, dict))
_WRITE: dict[type, Callable[[Any], str]] = {
    str: _text,
    int: int.__repr__,
    Pointer: _pointer_text,
    ErrorRecord: lambda error: encode_text(error.to_json()),
    tuple: lambda items: encode_text([i.to_json() if isinstance(i, Choice) else i for i in items]),
}
"""How a field is written, by its class.

Not one `canonical` of a dict of all fields: measured, that takes half as long again, and two records are written in
every step. That the bytes are the same is tested.
"""


def _step_started(r: StepStarted) -> str:
    branch = ',"branch":true' if r.branch else ""
    inputs = "" if r.inputs is None else f',"inputs":{_pointer_text(r.inputs)}'
    named = f'"inputs_fingerprint":{_text(r.inputs_fingerprint)},"path":{_text(r.path)}'
    return f'{{"at":{_text(r.at)},"attempt":{r.attempt}{branch}{inputs},{named}}}'


def _step_verified(r: StepVerified) -> str:
    pieces = [f'{{"at":{_text(r.at)},"attempt":{r.attempt}']
    if r.branch:
        pieces.append('"branch":true')
    if r.checks:
        pieces.append(f'"checks":{encode_text(r.checks)}')
    pieces.append(f'"duration_s":{r.duration_s!r}')
    if r.files is not None:
        pieces.append(f'"files":{_pointer_text(r.files)}')
    if r.inner_count is not None:
        pieces.append(f'"inner_count":{r.inner_count}')
    if r.inner_head is not None:
        pieces.append(f'"inner_head":{_text(r.inner_head)}')
    pieces.append(f'"inputs_fingerprint":{_text(r.inputs_fingerprint)}')
    if r.next_action:
        pieces.append(f'"next_action":{_text(r.next_action)}')
    pieces.append(f'"output":{_pointer_text(r.output)},"path":{_text(r.path)}')
    if r.sources is not None:
        pieces.append(f'"sources":{_pointer_text(r.sources)}')
    if r.spent:
        pieces.append(f'"spent":{encode_text(r.spent)}')
    if r.versions:
        pieces.append(f'"versions":{encode_text(r.versions)}')
    return ",".join(pieces) + "}"


_HOT: dict[type[Record], Callable[[Any], str]] = {StepStarted: _step_started, StepVerified: _step_verified}
"""Written out by hand, in half the time: one of each is made in every step."""


UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, RecursionError)
"""What reading a record, or a line that should hold one, raises when it is none that this version knows."""


def decode_record(kind: str, body: bytes) -> Record:
    """Read a record back. Raises: one of UNREADABLE."""
    cls, built, absent = _READ[kind]
    text = body.decode("utf-8")
    try:
        data, end = _scan(text, 0)
    except StopIteration:
        raise ValueError("it does not begin as JSON does") from None
    if end != len(text):
        raise ValueError(f"something follows the record at character {end}")
    for name, build in built:
        if name in data:
            data[name] = build(data[name])
    try:
        return cls(**data)
    except TypeError:  # a required field that was empty, or what is no such record
        return cls(**{**absent, **data})


_scan: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
"""Half the time of `json.loads`, which looks for encodings and spaces."""
_fields_of_pointer = itemgetter(*Pointer._fields)


def is_start_of(body: bytes, path: str, inputs_fingerprint: str) -> bool:
    """Say whether a stored start is of this step and these inputs, without reading it: they stand at its end."""
    return body.endswith(f'"inputs_fingerprint":"{inputs_fingerprint}","path":{_text(path)}}}'.encode())


def _pointer(data: dict[str, Any]) -> Pointer:
    if len(data) != len(Pointer._fields):
        raise ValueError(f"a pointer has {len(Pointer._fields)} fields, this one {len(data)}")
    return tuple.__new__(Pointer, _fields_of_pointer(data))


_BUILD: dict[str, Callable[[Any], Any]] = {
    "output": _pointer,
    "inputs": _pointer,
    "files": _pointer,
    "sources": _pointer,
    "request": _pointer,
    "result": _pointer,
    "evidence": _pointer,
    "error": lambda data: ErrorRecord(**data),
    "checks": tuple,
    "permissions": tuple,
    "held": tuple,
    "choices": lambda items: tuple(Choice(i["name"], i["does"], tuple(i["needs"])) for i in items),
}


_Way = tuple[type[Record], tuple[tuple[str, Callable[[Any], Any]], ...], dict[str, Any]]


def _way_of(cls: type[Record]) -> _Way:
    """Give what reading one kind takes: its class, what its fields are built with, required ones left out if empty."""
    built = tuple((f.name, _BUILD[f.name]) for f in fields(cls) if f.name in _BUILD)
    required = [f for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING]
    empty: dict[str, Any] = {"str": "", "Data": {}}
    return cls, built, {f.name: empty[str(f.type)] for f in required if str(f.type) in empty}


_READ = {name: _way_of(cls) for name, cls in KINDS.items()}

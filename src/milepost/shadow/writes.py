"""One write to an outside system as named fields: what an effect would have sent, did send, or what people did. Pure.

Nested requests become flat, `lines.0.amount`; an effect with one argument is known by what is in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

Fields: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Write:
    """One write. `effect` and `item_key` are empty where nobody knows them: in a file that people kept."""

    fields: Fields
    effect: str = ""
    item_key: str = ""
    path: str = ""
    about: Fields = field(default_factory=dict)  # provider, key, digest of the request, permission


def fields_of(request: Any) -> Fields:
    """Return the fields of a request as it is recorded."""
    arguments = request["arguments"]
    values = list(arguments.values())
    found = dict(flat(values[0] if len(values) == 1 and isinstance(values[0], dict) else arguments))
    for number, file in enumerate(request.get("files", [])):
        found[f"files.{number}"] = file["fingerprint"]
    return found


def flat(value: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of JSON with their dotted names; what is empty is a leaf."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from flat(inner, f"{before}{name}.")
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from flat(inner, f"{before}{number}.")
    else:
        yield before.rstrip("."), value


def aligned(write: Write, names: Sequence[str]) -> Write:
    """Rename fields to the names the other side has: equal, else the one name that ends like it, whatever the case."""
    return replace(write, fields={_as_there(name, names): value for name, value in write.fields.items()})


def _as_there(name: str, names: Sequence[str]) -> str:
    if name in names:
        return name
    plain = _plain(name)
    ending = [known for known in names if plain in (_plain(known), _plain(known.rpartition(".")[2]))]
    return ending[0] if len(ending) == 1 else name


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")

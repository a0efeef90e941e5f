"""Shapes of values with parts of their own kind: lists, tuples, sets, dicts, and unions.

Sets are sorted by the canonical bytes of their items. A dict's key that is not written as a text is its canonical JSON.
A union whose members write different kinds of JSON is written plainly; one whose members could be mistaken for each
other names the member: `{"Receipt": …}`. Which of both it is depends on the annotation alone, never on data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from milepost.records.canonical import Json, Walk, parse, write
from milepost.records.mismatch import Mismatch, at_index, at_key, class_name
from milepost.records.shapes import ARRAY, NULL, OBJECT, TEXT, Load, Shape, name_with

_MODULES = re.compile(r"[\w<>]+\.")
_Items = Callable[[list[Any]], Any]


def sequence_shape(cls: Any, item: Shape, *, is_immutable: bool = False) -> Shape:
    """Give the shape of `list[item]` or `tuple[item, ...]`."""
    name, dump_item, load_items = name_with(class_name(cls), [item]), item.dump, _loading_items(item)

    def dump(value: Any, walk: Walk) -> Json:
        if type(value) is not cls:
            raise Mismatch.of(value, name)
        walk.enter(len(value))
        out: list[Json] = []
        try:
            for part in value:
                out.append(dump_item(part, walk))
        except Mismatch as mismatch:
            mismatch.under(at_index(len(out)))
            raise
        walk.depth -= 1
        return out

    load: Load = load_items if cls is list else lambda value: cls(load_items(value))
    shape = Shape(name, frozenset((cls,)), ARRAY, dump, load, immutable=is_immutable and item.immutable)
    shape.take_flags([item])
    return shape


def set_shape(cls: Any, item: Shape) -> Shape:
    """Give the shape of `set[item]` or `frozenset[item]`."""
    name, dump_item, load_items = name_with(class_name(cls), [item]), item.dump, _loading_items(item)

    def dump(value: Any, walk: Walk) -> Json:
        if type(value) is not cls:
            raise Mismatch.of(value, name)
        walk.enter(len(value))
        try:
            out = sorted((dump_item(part, walk) for part in value), key=write)
        except Mismatch as mismatch:
            mismatch.under("[…]")  # a set has no positions
            raise
        walk.depth -= 1
        return out

    def load(value: Json) -> Any:
        return _hashed(cls, load_items(value), name)

    is_immutable = cls is frozenset and item.immutable
    shape = Shape(name, frozenset((cls,)), ARRAY, dump, load, immutable=is_immutable)
    shape.take_flags([item])
    return shape


def _hashed(make: _Items, items: list[Any], name: str) -> Any:
    try:
        result = make(items)
    except TypeError:
        raise Mismatch(f"items that fit into a {name}", "an item without a hash") from None
    if len(result) != len(items):
        raise Mismatch(f"a {name} of distinct items", "an item given twice")
    return result


def _loading_items(item: Shape) -> Callable[[Any], list[Any]]:
    load_item = item.load

    def load(value: Any) -> list[Any]:
        if type(value) is not list:
            raise Mismatch.of(value, "a list")
        return _each(load_item, value)

    return load


def _each(act: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Act on every item; one that does not fit is named by its place."""
    out: list[Any] = []
    try:
        for item in items:
            out.append(act(item))
    except Mismatch as mismatch:
        mismatch.under(at_index(len(out)))
        raise
    return out


def fixed_tuple_shape(items: list[Shape]) -> Shape:
    """Give the shape of `tuple[A, B]`: exactly as many items, each of its own shape."""
    name = name_with("tuple", items)

    def paired(value: Any, cls: Any) -> Iterable[tuple[Shape, Any]]:
        if type(value) is not cls:
            raise Mismatch.of(value, name)
        if len(value) != len(items):
            raise Mismatch(f"{name}, {len(items)} items", f"{len(value)} items")
        return zip(items, value, strict=True)

    def dump(value: Any, walk: Walk) -> Json:
        walk.enter(len(items))
        out = _each(lambda pair: pair[0].dump(pair[1], walk), paired(value, tuple))
        walk.depth -= 1
        return out

    def load(value: Json) -> Any:
        return tuple(_each(lambda pair: pair[0].load(pair[1]), paired(value, list)))

    is_immutable = all(item.immutable for item in items)
    shape = Shape(name, frozenset((tuple,)), ARRAY, dump, load, immutable=is_immutable)
    shape.take_flags(items)
    return shape


def dict_shape(key: Shape, item: Shape) -> Shape:
    """Give the shape of `dict[key, item]`."""
    shape_name = name_with("dict", [key, item])
    dump_key, load_key = _key_texts(key)
    dump_item, load_item = item.dump, item.load

    def dump(value: Any, walk: Walk) -> Json:
        if type(value) is not dict:
            raise Mismatch.of(value, shape_name)
        walk.enter(len(value))
        out: dict[str, Json] = {}
        for name, part in value.items():
            text = dump_key(name, walk)
            try:
                out[text] = dump_item(part, walk)
            except Mismatch as mismatch:
                mismatch.under(at_key(text))
                raise
        walk.depth -= 1
        if len(out) != len(value):
            raise Mismatch("keys that stay different as text", "two keys with one text")
        return out

    def load(value: Json) -> Any:
        if type(value) is not dict:
            raise Mismatch.of(value, "an object")
        out: dict[Any, Any] = {}
        for text, part in value.items():
            try:
                out[load_key(text)] = load_item(part)
            except Mismatch as mismatch:
                mismatch.under(at_key(text))
                raise
        return out

    shape = Shape(shape_name, frozenset((dict,)), OBJECT, dump, load)
    shape.take_flags([key, item])
    return shape


def _key_texts(key: Shape) -> tuple[Callable[[Any, Walk], str], Callable[[str], Any]]:
    """Give how a key becomes a text and back; a key that is always written as a text needs no quotes."""
    dump_key, load_key = key.dump, key.load
    if key.kinds == TEXT:
        return dump_key, load_key  # type: ignore[return-value]

    def dump(value: Any, walk: Walk) -> str:
        return write(dump_key(value, walk)).decode("utf-8")

    def load(text: str) -> Any:
        try:
            return load_key(parse(text.encode("utf-8")))
        except ValueError:
            raise Mismatch(f"a key that holds {key.name}", "another text") from None

    return dump, load


def optional_shape(inner: Shape) -> Shape:
    """Give the shape of `inner | None`, where inner never writes null itself."""
    dump_inner, load_inner = inner.dump, inner.load

    def dump(value: Any, walk: Walk) -> Json:
        return None if value is None else dump_inner(value, walk)

    def load(value: Json) -> Any:
        return None if value is None else load_inner(value)

    name = f"{inner.name} or None"
    shape = Shape(name, inner.classes | NULL, inner.kinds | NULL, dump, load, immutable=inner.immutable)
    shape.take_flags([inner])
    return shape


def union_shape(members: list[Shape]) -> Shape:
    """Give the shape of a union of two or more members."""
    kinds = [kind for member in members for kind in member.kinds]
    if len(kinds) == len(set(kinds)):
        return _plain_union(members)
    return _named_union(members)


def _plain_union(members: list[Shape]) -> Shape:
    by_kind = {kind: member.load for member in members for kind in member.kinds}

    def load(value: Json) -> Any:
        load_member = by_kind.get(type(value))
        if load_member is None:
            raise Mismatch.of(value, shape.name)
        return load_member(value)

    shape = _union(members, lambda member, value, walk: member.dump(value, walk), load)
    shape.kinds = frozenset(by_kind)
    return shape


def _named_union(members: list[Shape]) -> Shape:
    names = _distinct_names(members)
    by_name = dict(zip(names, members, strict=True))
    name_of = {id(member): name for name, member in by_name.items()}

    def dump_member(member: Shape, value: Any, walk: Walk) -> Json:
        walk.enter(1)
        written = member.dump(value, walk)
        walk.depth -= 1
        return {name_of[id(member)]: written}

    def load(value: Json) -> Any:
        if type(value) is not dict or len(value) != 1:
            raise Mismatch.of(value, f"an object with one of the keys {names}")
        ((name, part),) = value.items()
        if name not in by_name:
            raise Mismatch(f"one of the keys {names}", f"the key {name[:60]!r}")
        return by_name[name].load(part)

    return _union(members, dump_member, load)


def _distinct_names(members: list[Shape]) -> list[str]:
    """Name each member without modules where that is distinct, else in full, else with its number."""
    short = [_MODULES.sub("", member.name) for member in members]
    full = [member.name for member in members]
    for names in (short, full):
        if len(set(names)) == len(names):
            return names
    return [f"{name} ({number})" for number, name in enumerate(full, start=1)]


def _union(members: list[Shape], dump_member: Callable[[Shape, Any, Walk], Json], load: Load) -> Shape:
    """Choose the member by the value's exact class; several that take one class are tried in their order."""
    by_class: dict[type, list[Shape]] = {}
    for member in members:
        for cls in member.classes:
            by_class.setdefault(cls, []).append(member)
    name = " or ".join(member.name for member in members)

    def dump(value: Any, walk: Walk) -> Json:
        candidates = by_class.get(type(value), ())
        if not candidates:
            raise Mismatch.of(value, name)
        depth = walk.depth
        for candidate in candidates[:-1]:
            try:
                return dump_member(candidate, value, walk)
            except Mismatch:
                walk.depth = depth
        return dump_member(candidates[-1], value, walk)

    is_immutable = all(member.immutable for member in members)
    shape = Shape(name, frozenset(by_class), OBJECT, dump, load, immutable=is_immutable)
    shape.take_flags(members)
    return shape

"""Shapes of values with named parts: dataclasses, NamedTuples and TypedDicts, each an object by field name.

A field with a default may be absent from what is read (it was added since); a field nobody knows any more is refused.
Never imports pydantic, see `models`.
"""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable, Mapping
from typing import Any

from milepost.records.canonical import Json, Walk
from milepost.records.frozen import frozen
from milepost.records.mismatch import Mismatch, at_key, class_name
from milepost.records.shapes import Shape


@frozen
class Field:
    """One named part; `is_required` when its absence cannot be made up for, `is_computed` when it is not given back."""

    name: str
    shape: Shape
    is_required: bool = True
    is_computed: bool = False


def dataclass_shape(shape: Shape, cls: type, fields: list[Field]) -> None:
    """Fill in the shape of a dataclass (its own shape may already be among its fields')."""
    dump_fields = dumping(fields)
    load_fields = loading(shape.name, fields)
    computed = [field.name for field in fields if field.is_computed]
    refuse_more = _hidden_state(cls, [field.name for field in fields])

    def dump(value: Any, walk: Walk) -> Json:
        if type(value) is not cls:
            raise Mismatch.of(value, shape.name)
        refuse_more(value)
        return dump_fields(value, walk)

    def load(value: Json) -> Any:
        given = load_fields(value)
        for name in computed:
            given.pop(name, None)
        return build_from(cls, given)

    shape.dump, shape.load = dump, load
    shape.lossless = not computed and _is_plain_dataclass(cls)
    shape.take_flags([field.shape for field in fields])


def named_tuple_shape(shape: Shape, cls: type, fields: list[Field]) -> None:
    """Fill in the shape of a NamedTuple."""
    dump_fields = dumping(fields)
    load_fields = loading(shape.name, fields)

    def dump(value: Any, walk: Walk) -> Json:
        if type(value) is not cls:
            raise Mismatch.of(value, shape.name)
        if getattr(value, "__dict__", None):
            raise Mismatch("a NamedTuple without attributes of its own", "attributes besides its fields")
        return dump_fields(value, walk)

    shape.dump, shape.load = dump, lambda value: build_from(cls, load_fields(value))
    shape.lossless = cls.__bases__ == (tuple,)
    shape.immutable = all(field.shape.immutable for field in fields)
    shape.take_flags([field.shape for field in fields])


def typed_dict_shape(shape: Shape, fields: list[Field]) -> None:
    """Fill in the shape of a TypedDict: a plain dict with exactly the keys that were declared."""
    by_name = {field.name: field for field in fields}
    required = {field.name for field in fields if field.is_required}

    def dump(value: Any, walk: Walk) -> Json:
        if type(value) is not dict:
            raise Mismatch.of(value, f"dict ({shape.name})")
        walk.enter(len(value))
        if not required <= value.keys():
            raise Mismatch(f"the key {min(required - value.keys())!r}", "no such key")
        out: dict[str, Json] = {}
        for key, part in value.items():
            if type(key) is not str or key not in by_name:
                raise Mismatch(f"a key that {shape.name} declares", _shown_key(key))
            out[key] = dump_field(by_name[key], part, walk)
        walk.depth -= 1
        return out

    shape.dump, shape.load = dump, loading(shape.name, fields)
    shape.take_flags([field.shape for field in fields])


def dumping(fields: list[Field]) -> Callable[[Any, Walk], dict[str, Json]]:
    """Give the function that writes every field of a value under its name."""
    parts = [(field.name, field.shape) for field in fields]

    def dump(value: Any, walk: Walk) -> dict[str, Json]:
        walk.enter(len(parts))
        out: dict[str, Json] = {}
        name = ""
        try:
            for name, shape in parts:
                out[name] = shape.dump(getattr(value, name), walk)
        except Mismatch as mismatch:
            mismatch.under(at_key(name))
            raise
        walk.depth -= 1
        return out

    return dump


def loading(owner: str, fields: list[Field]) -> Callable[[Any], dict[str, Any]]:
    """Give the function that reads an object's fields; one that is missing or unknown is refused."""
    parts = [(field.name, field.shape, field.is_required) for field in fields]

    def load(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise Mismatch.of(value, f"an object ({owner})")
        out: dict[str, Any] = {}
        name = ""
        try:
            for name, shape, is_required in parts:
                if name in value:
                    out[name] = shape.load(value[name])
                elif is_required:
                    raise Mismatch(f"a field of {owner}", "no such field")
        except Mismatch as mismatch:
            mismatch.under(at_key(name))
            raise
        if len(out) != len(value):
            unknown = min(value.keys() - out.keys())
            raise Mismatch(f"the fields of {owner}", f"the field {unknown[:60]!r}, which it does not have")
        return out

    return load


def dump_field(field: Field, value: Any, walk: Walk) -> Json:
    """Write one field, and name it if it does not fit."""
    try:
        return field.shape.dump(value, walk)
    except Mismatch as mismatch:
        mismatch.under(at_key(field.name))
        raise


def build_from(make: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Call a constructor with what was read; whatever it raises is a mismatch."""
    try:
        return make(**given)
    except Exception as error:  # a constructor is user code
        name = getattr(make, "__qualname__", "its class")
        raise Mismatch(f"values that {name} accepts again", f"{class_name(type(error))} from it") from error


def _is_plain_dataclass(cls: type) -> bool:
    """Tell whether building it from its fields is certain to give them back: no user code takes part."""
    params = cls.__dict__.get("__dataclass_params__")
    return (
        params is not None
        and params.init
        and not hasattr(cls, "__post_init__")
        and not hasattr(cls, "__pydantic_validator__")
        and _is_inherited(cls, "__new__", "__getattribute__", *(() if params.frozen else ("__setattr__",)))
        and not any(_is_descriptor(cls.__dict__.get(name)) for name in cls.__dict__["__dataclass_fields__"])
    )


def _is_inherited(cls: type, *names: str) -> bool:
    return all(getattr(cls, name) is getattr(object, name) for name in names)


def _is_descriptor(attribute: object) -> bool:
    return hasattr(type(attribute), "__set__") and type(attribute) is not types.MemberDescriptorType


def _hidden_state(cls: type, names: list[str]) -> Callable[[Any], None]:
    """Give the check that an instance holds nothing besides its fields, which would be lost."""
    known = set(names)
    slots = [name for name in _slot_names(cls) if name not in known]
    has_dict = hasattr(cls, "__dict__") and cls.__dictoffset__ != 0

    def check(value: Any) -> None:
        if has_dict and not value.__dict__.keys() <= known:
            refuse_hidden(cls, value.__dict__, known)
        for name in slots:
            if hasattr(value, name):
                raise Mismatch(f"no state besides the fields of {class_name(cls)}", f"the slot {name!r}")

    return check


def _slot_names(cls: type) -> list[str]:
    return [
        name
        for base in cls.__mro__
        for name, member in base.__dict__.items()
        if type(member) is types.MemberDescriptorType and not name.startswith("__")
    ]


def refuse_hidden(cls: type, state: Mapping[str, Any], known: set[str]) -> None:
    """Refuse attributes that are no fields: they would be lost."""
    for name in state.keys() - known:
        if not isinstance(getattr(cls, name, None), functools.cached_property):  # computed again when asked
            raise Mismatch(f"no state besides the fields of {class_name(cls)}", f"the attribute {name!r:.60}")


def _shown_key(key: object) -> str:
    return f"the key {key[:60]!r}" if type(key) is str else f"a key of class {class_name(type(key))}"


def placeholder(name: str, classes: frozenset[type], kinds: frozenset[type]) -> Shape:
    """Give a shape that its own parts can refer to before it is filled in."""
    return Shape(name, classes, kinds, _unfilled, _unfilled)


def reference(shape: Shape) -> Shape:
    """Give a shape that asks `shape` each time: it may be filled in later."""
    return dataclasses.replace(
        shape, dump=lambda value, walk: shape.dump(value, walk), load=lambda value: shape.load(value)
    )


def _unfilled(*_: Any) -> Any:
    raise AssertionError("a shape is used before it is built")

"""Shapes that need pydantic: its models, classes only it knows, and constraints. Imports it late.

A model is restored with `model_construct`, so its validators do not run again on values they already passed: what comes
back is what was written, also when a validator is not idempotent or was edited since. Which fields were given is kept
(`$unset`), extras and private attributes too as far as they are JSON; private state that is not made again is refused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from milepost.records.canonical import Json, Walk, check_exact
from milepost.records.mismatch import Mismatch, at_key, class_name
from milepost.records.shapes import ANY_KIND, Shape
from milepost.records.shapes.fields import Field, build_from, dump_field, loading, refuse_hidden

_UNSET = "$unset"  # no field can be called so, and an extra that is gets refused


def model_shape(shape: Shape, cls: Any, fields: list[Field]) -> None:
    """Fill in the shape of a pydantic model: fields, extras, which were given, and private state to compare."""
    load_fields = loading(shape.name, fields)
    names = {field.name for field in fields}

    def dump(value: Any, walk: Walk) -> Json:
        if type(value) is not cls:
            raise Mismatch.of(value, shape.name)
        state = value.__dict__
        walk.enter(len(state))
        out = {field.name: dump_field(field, _present(state, field.name), walk) for field in fields}
        _dump_state(out, value.__pydantic_extra__, walk)
        _dump_state(out, value.__pydantic_private__, walk)
        refuse_hidden(cls, state, names)
        unset = sorted(names - value.__pydantic_fields_set__)
        if unset:
            out[_UNSET] = list(unset)
        walk.depth -= 1
        return out

    def load(value: Json) -> Any:
        if type(value) is not dict:
            raise Mismatch.of(value, f"an object ({shape.name})")
        given = load_fields({name: part for name, part in value.items() if name in names})
        unset = _unset_names(value)
        extra = {name: part for name, part in value.items() if name not in names and name not in private}
        extra.pop(_UNSET, None)
        if extra and not has_extra:
            raise Mismatch(f"the fields of {shape.name}", f"the field {min(extra)[:60]!r}, which it does not have")
        given_names = (given.keys() | extra.keys()) - unset
        by_alias = {aliases.get(name, name): part for name, part in given.items()}
        return build_from(cls.model_construct, {"_fields_set": set(given_names), **by_alias, **extra})

    # `model_construct` looks for a field's alias first: given by name, swapped aliases would swap the values.
    aliases = {name: field.alias for name, field in cls.model_fields.items() if field.alias}
    private = frozenset(cls.__private_attributes__)
    has_extra = cls.model_config.get("extra") == "allow"
    shape.dump, shape.load = dump, load
    shape.lossless = not private and not has_extra and not aliases and not cls.__pydantic_post_init__
    shape.take_flags([field.shape for field in fields])


def foreign_shape(annotation: Any, name: str) -> Shape:
    """Give the shape of a class that pydantic knows and we do not: each value is read back at once and compared.

    Raises:
        TypeError: pydantic does not know it either.
    """
    import pydantic

    try:
        adapter = pydantic.TypeAdapter(annotation)
    except pydantic.errors.PydanticUserError as error:
        raise TypeError(str(error).partition("\n")[0]) from None

    def dump(value: Any, walk: Walk) -> Json:
        written = _pydantic(lambda: adapter.dump_python(value, mode="json", round_trip=True, warnings="error"), name)
        back = load(check_exact(written, walk))
        if type(back) is not type(value) or not bool(back == value):
            raise Mismatch(f"a {name} that is read back as an equal one", class_name(type(value)))
        return written  # type: ignore[no-any-return]

    def load(value: Json) -> Any:
        return _pydantic(lambda: adapter.validate_python(value), name)

    classes = frozenset((annotation,)) if isinstance(annotation, type) else frozenset()
    return Shape(name, classes, ANY_KIND, dump, load, lossless=False, holds_paths=True)


def constrained_shape(annotation: Any, inner: Shape) -> Shape:
    """Give the shape of `Annotated[T, constraint]`: `inner`, and pydantic must find the constraint kept."""
    import pydantic

    adapter = pydantic.TypeAdapter(annotation)

    def dump(value: Any, walk: Walk) -> Json:
        written = inner.dump(value, walk)
        _pydantic(lambda: adapter.validate_python(value, strict=True), inner.name)
        return written

    def load(value: Json) -> Any:
        loaded = inner.load(value)
        _pydantic(lambda: adapter.validate_python(loaded, strict=True), inner.name)
        return loaded

    return dataclasses.replace(inner, dump=dump, load=load, is_raw=False)


def _pydantic(act: Callable[[], Any], name: str) -> Any:
    """Let pydantic act and translate what it raises; messages are its own, without the values."""
    import pydantic
    from pydantic_core import PydanticSerializationError

    try:
        return act()
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise Mismatch(f"a valid {name}", first["msg"]) from None
    except PydanticSerializationError as error:
        raise Mismatch(f"a {name} that pydantic can write as JSON", str(error)[:200]) from None


def _dump_state(out: dict[str, Json], state: Mapping[str, Any] | None, walk: Walk) -> None:
    """Add a model's extras or private attributes, which have no annotation we could follow: exact JSON only."""
    for name, value in (state or {}).items():
        if name in out or name == _UNSET:
            raise Mismatch("extra names that differ from the fields'", f"an extra called {name!r:.60}")
        try:
            out[name] = check_exact(value, walk)
        except Mismatch as mismatch:
            mismatch.under(at_key(name))
            raise


def _present(state: Mapping[str, Any], name: str) -> Any:
    try:
        return state[name]
    except KeyError:
        raise Mismatch(f"a value for the field {name!r}", "none, it was never set") from None


def _unset_names(value: dict[str, Json]) -> set[str]:
    names = value.get(_UNSET, [])
    if type(names) is not list or not all(type(name) is str for name in names):
        raise Mismatch.of(names, f"a list of field names ({_UNSET})")
    return {str(name) for name in names}

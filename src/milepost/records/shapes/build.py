"""From an annotation to its shape: the one place that knows what can be recorded and what cannot, and says why not.

Called once per declared function, never while a run works. Follows dataclasses, models, generics, aliases and
recursive classes; the classes it builds come from annotations alone.
"""

from __future__ import annotations

import collections.abc as abc
import dataclasses
import enum
import inspect
import io
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

from milepost.records.annotations import class_annotations
from milepost.records.mismatch import at_key, class_name
from milepost.records.shapes import NULL, OBJECT, UNTYPED, Shape, Unsupported
from milepost.records.shapes.container import (
    dict_shape,
    fixed_tuple_shape,
    optional_shape,
    sequence_shape,
    set_shape,
    union_shape,
)
from milepost.records.shapes.fields import (
    Field,
    dataclass_shape,
    named_tuple_shape,
    placeholder,
    reference,
    typed_dict_shape,
)
from milepost.records.shapes.scalar import SCALARS, enum_shape, literal_shape, untyped

Bindings = dict[Any, Any]  # type variable -> what it stands for here

_UNTYPED = (Any, object, inspect.Parameter.empty)
_LISTS = (list, abc.Sequence, abc.MutableSequence, abc.Iterable, abc.Collection)
_DICTS = (dict, abc.Mapping, abc.MutableMapping)
_SETS = (set, abc.Set, abc.MutableSet)
_RUNNING = (abc.Iterator, abc.AsyncIterable, abc.Awaitable)
_QUALIFIERS = ("Required", "NotRequired", "ReadOnly", "Final", "Unpack")
_NO_STATE = "it stands for something running or open, not for a value; return its result"
_NO_NAME = (
    "the name cannot be found, or is an alias that contains itself; "
    "define it before the function at module level, and write Any for plain JSON"
)
_NO_SHAPE = "no way to write it is known; use a dataclass, a pydantic model or JSON types"


def build(annotation: Any) -> Shape:
    """Build the shape of an annotation whose names are resolved.

    Raises:
        Unsupported: it, or a part of it, cannot be recorded; with the part's path and the reason.
    """
    return _Builder().build(annotation, {})


def is_untyped(annotation: object) -> bool:
    """Tell whether an annotation says nothing: it is missing, `Any` or `object`."""
    return any(annotation is free for free in _UNTYPED)


class _Builder:
    def __init__(self) -> None:
        self._begun: dict[Any, Shape] = {}  # classes under construction, so that they can contain themselves

    def build(self, annotation: Any, bound: Bindings) -> Shape:
        if _is_alias(annotation):
            return self._alias(annotation, bound)
        annotation = _bare(annotation, bound)
        if is_untyped(annotation):
            return untyped()
        if isinstance(annotation, str | typing.ForwardRef):
            raise Unsupported(str(annotation), _NO_NAME)
        if typing.get_origin(annotation) is not None:
            return self._generic(annotation, typing.get_origin(annotation), typing.get_args(annotation), bound)
        if isinstance(annotation, type):
            return self._class(annotation, (), bound)
        raise Unsupported(_shown(annotation), _NO_SHAPE)

    def _generic(self, annotation: Any, origin: Any, args: tuple[Any, ...], bound: Bindings) -> Shape:
        if origin is typing.Annotated:
            return self._annotated(annotation, args, bound)
        if origin is typing.Union or origin is types.UnionType:
            return self._union(args, bound)
        if origin is typing.Literal:
            return self._literal(annotation, args)
        if getattr(origin, "__name__", getattr(origin, "_name", "")) in _QUALIFIERS:
            return self.build(args[0], bound)
        if isinstance(origin, type):
            return self._class(origin, args, bound)
        if hasattr(origin, "__value__"):  # a generic alias: type Pair[T] = tuple[T, T]
            return self.build(origin.__value__, dict(zip(origin.__type_params__, args, strict=False)))
        raise Unsupported(_shown(annotation), _NO_SHAPE)

    def _alias(self, alias: Any, bound: Bindings) -> Shape:
        if alias in self._begun:
            return reference(self._begun[alias])
        self._begun[alias] = shape = placeholder(alias.__name__, frozenset(), frozenset())
        inner = self.build(alias.__value__, bound)
        for attribute in dataclasses.fields(Shape):
            setattr(shape, attribute.name, getattr(inner, attribute.name))
        return shape

    def _class(self, cls: type, args: tuple[Any, ...], bound: Bindings) -> Shape:
        if cls in SCALARS:
            return SCALARS[cls]()
        if issubclass(cls, enum.Enum):
            return enum_shape(cls)
        if cls in (*_LISTS, *_DICTS, *_SETS, frozenset, tuple):
            return self._container(cls, [self.build(arg, bound) for arg in args if arg is not ...], args)
        fill = _filler(cls)
        if fill is None:
            return self._foreign(cls, args)
        key = (cls, tuple(_bare(arg, bound) for arg in args))
        if key in self._begun:
            return reference(self._begun[key])
        classes: frozenset[type] = frozenset((dict if is_typed_dict(cls) else cls,))
        self._begun[key] = shape = placeholder(_named(cls, args), classes, OBJECT)
        fill(self, shape, cls, _bindings(cls, key[1]))
        return shape

    def _container(self, cls: type, parts: list[Shape], args: tuple[Any, ...]) -> Shape:
        if cls is tuple and args and args[-1] is not ...:
            return fixed_tuple_shape(parts)
        if cls is tuple and not args:
            return sequence_shape(tuple, untyped())
        if cls is tuple:
            return sequence_shape(tuple, parts[0], is_immutable=True)
        if cls in _DICTS:
            return dict_shape(*parts) if parts else dict_shape(SCALARS[str](), untyped())
        item = parts[0] if parts else untyped()
        if cls in _LISTS:
            return sequence_shape(list, item)
        return set_shape(frozenset if cls is frozenset else set, item)

    def _annotated(self, annotation: Any, args: tuple[Any, ...], bound: Bindings) -> Shape:
        notes = [note for note in args[1:] if _is_constraint(note)]
        try:
            inner = self.build(args[0], bound)
        except Unsupported:
            if not notes:
                raise
            return self._foreign(annotation, ())
        if not notes:
            return inner
        from milepost.records.shapes.models import constrained_shape

        return constrained_shape(annotation, inner)

    def _union(self, args: tuple[Any, ...], bound: Bindings) -> Shape:
        members = _without_covered([self.build(arg, bound) for arg in args])
        if not all(member.kinds for member in members):
            raise Unsupported(_shown(args), "a recursive alias directly inside a union; put it into the alias itself")
        others = [member for member in members if member.classes != NULL]
        if len(others) == len(members) or not others:
            return members[0] if len(members) == 1 else union_shape(members)
        inner = others[0] if len(others) == 1 else union_shape(others)
        return union_shape(members) if inner.kinds >= NULL else optional_shape(inner)

    def _literal(self, annotation: Any, values: tuple[Any, ...]) -> Shape:
        try:
            return literal_shape(values, [self._class(type(value), (), {}) for value in values])
        except ValueError:
            raise Unsupported(_shown(annotation), "two of its values are written as the same text") from None

    def _foreign(self, annotation: Any, args: tuple[Any, ...]) -> Shape:
        cls = annotation if isinstance(annotation, type) else object
        if annotation is abc.Callable or issubclass(cls, (*_RUNNING, io.IOBase, types.FunctionType)):
            raise Unsupported(_shown(annotation), _NO_STATE)
        if args or issubclass(cls, (abc.Collection, type, types.ModuleType)):
            raise Unsupported(_shown(annotation), _NO_SHAPE)
        from milepost.records.shapes.models import foreign_shape

        try:
            return foreign_shape(annotation, _shown(annotation))
        except TypeError:
            raise Unsupported(_shown(annotation), _NO_SHAPE) from None

    def field(self, name: str, annotation: Any, bound: Bindings, **facts: bool) -> Field:
        try:
            return Field(name, self.build(annotation, bound), **facts)
        except Unsupported as unsupported:
            unsupported.under(at_key(name))
            raise


def _fill_dataclass(builder: _Builder, shape: Shape, cls: Any, bound: Bindings) -> None:
    hints = _hints(cls)
    for name, field in cls.__dataclass_fields__.items():
        if getattr(field, "_field_type", None) is dataclasses._FIELD_INITVAR:  # type: ignore[attr-defined]
            raise Unsupported(class_name(cls), f"its InitVar {name!r} is not kept, so it could not be built again")
    fields = [
        builder.field(
            field.name,
            hints[field.name],
            bound,
            is_required=field.init and field.default is field.default_factory is dataclasses.MISSING,
            is_computed=not field.init,
        )
        for field in dataclasses.fields(cls)
    ]
    dataclass_shape(shape, cls, fields)


def _fill_named_tuple(builder: _Builder, shape: Shape, cls: Any, bound: Bindings) -> None:
    hints = _hints(cls)
    fields = [
        builder.field(name, hints.get(name, Any), bound, is_required=name not in cls._field_defaults)
        for name in cls._fields
    ]
    named_tuple_shape(shape, cls, fields)


def _fill_typed_dict(builder: _Builder, shape: Shape, cls: Any, bound: Bindings) -> None:
    fields = [
        builder.field(name, hint, bound, is_required=_is_required(cls, name, hint))
        for name, hint in _hints(cls).items()
    ]
    typed_dict_shape(shape, fields)


def _fill_model(builder: _Builder, shape: Shape, cls: Any, bound: Bindings) -> None:
    from milepost.records.shapes.models import model_shape

    if not cls.__pydantic_complete__ and cls.model_rebuild(raise_errors=False) is False:
        raise Unsupported(class_name(cls), "a name in its annotations cannot be found; call model_rebuild() first")
    for name, field in cls.model_fields.items():
        if field.exclude:
            raise Unsupported(class_name(cls), f"its field {name!r} is excluded from what is written, it would be lost")
    fields = [
        builder.field(name, _field_annotation(field), bound, is_required=field.is_required())
        for name, field in cls.model_fields.items()
    ]
    model_shape(shape, cls, fields)


def _field_annotation(field: Any) -> Any:
    """Give a model field's type; what only pydantic can write keeps the notes that say how."""
    writers = [note for note in field.metadata if "Serializer" in type(note).__name__]
    return typing.Annotated[(field.annotation, *field.metadata)] if writers else field.annotation


_Fill = Callable[[_Builder, Shape, Any, Bindings], None]


def _filler(cls: type) -> _Fill | None:
    if dataclasses.is_dataclass(cls):
        return _fill_dataclass
    if is_typed_dict(cls):
        return _fill_typed_dict
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _fill_named_tuple
    pydantic = sys.modules.get("pydantic")  # who has a model has imported it
    if pydantic is not None and issubclass(cls, pydantic.BaseModel):
        return _fill_model
    return None


def is_typed_dict(cls: type) -> bool:
    """Tell whether `cls` is a TypedDict, from `typing` or `typing_extensions`."""
    return cls.__bases__ == (dict,) and hasattr(cls, "__required_keys__") and hasattr(cls, "__total__")


def _is_required(cls: Any, name: str, hint: Any) -> bool:
    """Read `Required` and `NotRequired` from the resolved hint: `__required_keys__` is wrong for hints in quotes."""
    qualifier = getattr(typing.get_origin(hint), "_name", "")
    if qualifier in ("Required", "NotRequired"):
        return bool(qualifier == "Required")
    return name in cls.__required_keys__


def _hints(cls: type) -> dict[str, Any]:
    try:
        return class_annotations(cls)
    except NameError as error:
        reason = f"{error}; define it before the function, at module level"
        raise Unsupported(class_name(cls), reason) from None


def _bare(annotation: Any, bound: Bindings) -> Any:
    """Look through type variables, NewTypes and aliases to what they stand for."""
    while True:
        if isinstance(annotation, typing.TypeVar):
            annotation = bound.get(annotation, annotation.__bound__ or Any)
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        elif _is_alias(annotation):
            annotation = annotation.__value__
        else:
            return type(None) if annotation is None else annotation


def _is_alias(annotation: Any) -> bool:
    """Tell whether this is `type X = …` without arguments of its own."""
    return hasattr(annotation, "__value__") and typing.get_origin(annotation) is None


def _without_covered(members: list[Shape]) -> list[Shape]:
    """Leave out what another member takes as well: int beside float, a JSON scalar beside an untyped value."""
    names = {member.name for member in members}
    covered = {"int"} if "float" in names else set()
    if UNTYPED in names:
        covered |= {"None", "bool", "int", "float", "str"}
    return [member for member in members if member.name not in covered]


def _bindings(cls: type, args: tuple[Any, ...]) -> Bindings:
    """Say what each type variable of `cls` and of its generic bases stands for."""
    bound: Bindings = dict(zip(getattr(cls, "__parameters__", ()), args, strict=False))
    for base in getattr(cls, "__orig_bases__", ()):
        origin = typing.get_origin(base)
        if isinstance(origin, type) and origin is not typing.Generic:
            inner = tuple(_bare(arg, bound) for arg in typing.get_args(base))
            bound = {**_bindings(origin, inner), **bound}
    return bound


def _is_constraint(note: object) -> bool:
    return type(note).__module__.partition(".")[0] in ("annotated_types", "pydantic")


def _named(cls: type, args: tuple[Any, ...]) -> str:
    return f"{class_name(cls)}[{', '.join(map(_shown, args))}]" if args else class_name(cls)


def _shown(annotation: Any) -> str:
    return class_name(annotation) if isinstance(annotation, type) else str(annotation)[:200]

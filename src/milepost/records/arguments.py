"""The arguments of one declared function: bound to their names, written as one JSON object, read back.

A function's codec is built when it is declared. `bind` says what Python's own call would say about a wrong call. A
parameter in `unwatched` is bound but never written. Called by the scope that names a call, and by the protocol.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from milepost.errors import BadOption
from milepost.records.annotations import function_annotations
from milepost.records.canonical import Json, Walk, parse, read, write
from milepost.records.codec import cause_of, not_decodable, not_encodable, refuse_difference, shape_for
from milepost.records.mismatch import Mismatch, at_key
from milepost.records.shapes import Shape
from milepost.records.shapes.container import dict_shape, sequence_shape
from milepost.records.shapes.scalar import SCALARS

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class ArgumentsCodec:
    """The way of one function's arguments to bytes and back.

    `skip_first` leaves out an effect's key parameter; `where` begins every message.

    Raises:
        BadOption: `unwatched` names a parameter the function does not have.
        NotEncodable: an annotation of a watched parameter cannot be recorded.
    """

    def __init__(
        self, function: Callable[..., object], *, skip_first: bool, unwatched: Collection[str], where: str
    ) -> None:
        self._where = where
        self._name = function.__qualname__
        parameters = list(inspect.signature(function).parameters.values())[1 if skip_first else 0 :]
        self._signature = inspect.Signature(parameters)
        self._refuse_unknown(unwatched)
        self.parameters = tuple(p.name for p in parameters)
        self.watched = tuple(p.name for p in parameters if p.name not in unwatched)
        hints = function_annotations(function, where=where)
        self._shapes = {p.name: self._shape(p, hints) for p in parameters if p.name not in unwatched}
        self._names = tuple(p.name for p in parameters if p.kind in _POSITIONAL)
        self._is_plain = all(p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for p in parameters)
        self.defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        self.immutable = all(shape.immutable for shape in self._shapes.values())
        """Whether no watched argument can be changed in place, so that nobody need look."""
        self.holds_paths = any(shape.holds_paths for shape in self._shapes.values())
        """Whether a watched argument may contain a path; if not, `find_paths` need not be asked."""

    def bind(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
        """Give every argument by its parameter's name, defaults applied; the inverse is `spread`.

        Raises:
            TypeError: the call does not fit the function, as Python itself would say.
        """
        if self._is_plain:
            if not kwargs and len(args) == len(self._names):
                return dict(zip(self._names, args, strict=True))
            bound = self._bind_plain(args, kwargs)
            if bound is not None:
                return bound
        try:
            signed = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self._name}(): {error}") from None
        signed.apply_defaults()
        return dict(signed.arguments)

    def spread(self, bound: Mapping[str, object]) -> tuple[tuple[object, ...], dict[str, object]]:
        """Give the positional and the keyword arguments for calling the function with what `bind` gave."""
        signed = inspect.BoundArguments(self._signature, dict(bound))
        return signed.args, signed.kwargs

    def encode(self, bound: Mapping[str, object]) -> bytes:
        """Write the watched arguments as one canonical JSON object.

        Raises:
            NotEncodable: an argument is of another class than annotated or cannot be written, with its path.
        """
        try:
            return write(self._dump(bound))
        except Exception as error:  # noqa: BLE001 - a property, a time zone or an __eq__ is user code
            raise not_encodable(error, self._where) from cause_of(error)

    def round_trip(self, bound: Mapping[str, object]) -> bytes:
        """Write the watched arguments and make sure that they would come back as they are.

        Raises:
            NotEncodable: as `encode`, or an argument does not come back as the same class and value.
        """
        data = self.encode(bound)
        if all(shape.lossless for shape in self._shapes.values()):
            return data
        try:
            refuse_difference(data, write(self._dump(self._load(read(data)))))
        except Exception as error:  # noqa: BLE001 - see encode
            raise not_encodable(error, self._where) from cause_of(error)
        return data

    def decode(self, data: bytes) -> dict[str, object]:
        """Read the watched arguments back; a parameter that was added since takes its default.

        Raises:
            NotDecodable: the bytes do not hold arguments for this function, with the path.
        """
        try:
            return self._load(parse(data))
        except Exception as error:  # noqa: BLE001 - a constructor is user code
            raise not_decodable(error, self._where) from cause_of(error)

    def _bind_plain(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object] | None:
        """Bind a call of a function without starred parameters; None when the call is wrong."""
        bound = {**self.defaults, **dict(zip(self._names, args, strict=False)), **kwargs}
        is_right = (
            len(args) <= len(self._names)
            and kwargs.keys().isdisjoint(self._names[: len(args)])
            and bound.keys() == self._signature.parameters.keys()
        )
        return {name: bound[name] for name in self._names} if is_right else None

    def _dump(self, bound: Mapping[str, object]) -> Json:
        walk = Walk()
        out: dict[str, Json] = {}
        name = ""
        try:
            for name, shape in self._shapes.items():
                out[name] = shape.dump(bound[name], walk)
        except Mismatch as mismatch:
            mismatch.under(at_key(name))
            raise
        return out

    def _load(self, value: Json) -> dict[str, object]:
        if type(value) is not dict:
            raise Mismatch.of(value, "an object of arguments")
        unknown = value.keys() - self._shapes.keys()
        if unknown:
            raise Mismatch(f"parameters of {self._name}", f"the argument {min(unknown)[:60]!r}")
        return {name: self._load_one(name, value) for name in self._shapes}

    def _load_one(self, name: str, value: dict[str, Json]) -> object:
        try:
            if name in value:
                return self._shapes[name].load(value[name])
            if name in self.defaults:
                return self.defaults[name]
            raise Mismatch(f"an argument for {self._name}", "none, the parameter was added since")
        except Mismatch as mismatch:
            mismatch.under(at_key(name))
            raise

    def _refuse_unknown(self, unwatched: Collection[str]) -> None:
        unknown = sorted(set(unwatched) - self._signature.parameters.keys())
        if unknown:
            names = ", ".join(self._signature.parameters) or "none"
            raise BadOption(where=self._where, reason=f"unwatched={unknown!r}: its parameters are {names}")

    def _shape(self, parameter: inspect.Parameter, hints: Mapping[str, Any]) -> Shape:
        annotation = hints.get(parameter.name, Any)
        where = f"{self._where}, parameter {parameter.name}"
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            return sequence_shape(tuple, shape_for(annotation, where=where), is_immutable=True)
        if parameter.kind is inspect.Parameter.VAR_KEYWORD and not _is_unpack(annotation):
            return dict_shape(SCALARS[str](), shape_for(annotation, where=where))
        return shape_for(annotation, where=where)


def _is_unpack(annotation: Any) -> bool:
    """Tell whether `**options: Unpack[Options]` names a TypedDict of its own."""
    return getattr(getattr(annotation, "__origin__", None), "_name", "") == "Unpack"

"""What the decorators declared, as data: everything `milepost map` can print without running anything. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import timedelta
from typing import Any, Literal

from milepost.protocol.approving import Approving
from milepost.protocol.limits import Limits
from milepost.protocol.policy import Retry
from milepost.protocol.reads import Read
from milepost.records.arguments import ArgumentsCodec
from milepost.records.codec import Codec
from milepost.records.frozen import frozen

OWN_VERSIONS = ("code", "version")
"""Versions that belong to one function; the others of a record are its task's."""


WITHIN = "within "
"""Begins the versions a checkpoint carries for a step inside it: `within NAME`."""
WITHIN_MAX = 40
"""Steps of different names inside one step whose versions its checkpoint carries; more would not fit a record."""


def own_versions(versions: Mapping[str, Any]) -> dict[str, str]:
    """Return the part of a record's versions that is compared function by function."""
    return {name: versions[name] for name in OWN_VERSIONS if name in versions}


def compared_versions(versions: Mapping[str, Any]) -> dict[str, str]:
    """Return what a resume compares of a checkpoint: its own versions and those of the steps inside it."""
    within = {name: code for name, code in versions.items() if name.startswith(WITHIN)}
    return own_versions(versions) | within


def label_of(versions: Mapping[str, Any]) -> str:
    """Return a function's own versions as one text: its code, and `version=` where it has one."""
    return " ".join(own_versions(versions).values())


def changed_versions(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Say which versions changed and how: `model gpt-x → gpt-y`."""
    names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    return ", ".join(f"{name} {old.get(name, 'none')} → {new.get(name, 'none')}" for name in names)


@frozen
class Verifier:
    """A check of an output: `call(output, **inputs)`; `inputs` are the parameters of the step it wants."""

    name: str
    call: Callable[..., object]
    inputs: tuple[str, ...] = ()


@frozen
class Spec:
    """What steps and effects have in common."""

    name: str
    function: Callable[..., Any]
    is_async: bool
    arguments: ArgumentsCodec
    output: Codec[Any]
    key: Callable[..., object] | None
    retry: Retry | None
    next_action: str
    versions: Mapping[str, str]
    where: str  # MODULE:QUALNAME, for people
    doc: str
    approving: Approving | None = None


@frozen
class StepSpec(Spec):
    """A step: what is watched, what verifies it, why it is a checkpoint."""

    verifiers: tuple[Verifier, ...] = ()
    sources: tuple[Mapping[str, Any], ...] = ()  # descriptors
    writes: tuple[str, ...] = ()
    why: str = ""
    reads: tuple[Read, ...] = ()
    waits: bool = False  # a durable sleep: no body, only a time
    checks: tuple[str, ...] = field(init=False)  # its verifiers by name, as each checkpoint lists them
    texts_size: int = field(init=False)  # bytes of what each checkpoint says in the declaration's own words

    def __post_init__(self) -> None:
        checks = tuple(verifier.name for verifier in self.verifiers)
        texts = (self.next_action, *checks, *self.versions, *self.versions.values())
        object.__setattr__(self, "checks", checks)
        object.__setattr__(self, "texts_size", sum(len(text.encode("utf-8", "surrogatepass")) for text in texts))


@frozen
class EffectSpec(Spec):
    """An effect: how its outcome can be known when an answer is lost."""

    provider: str = ""
    lookup: Callable[..., object] | None = None
    settle: timedelta | None = None
    key_lifetime: timedelta | None = None
    rejected: tuple[type[BaseException], ...] = ()
    ref: Callable[[Any], str | None] | None = None
    permission: str | None = None
    scope: Literal["run", "task"] = "run"
    shadow: Callable[..., Any] | None = None  # what the next step gets in a shadow run; None: a person is asked


@frozen
class TaskSpec:
    """A task: its inputs, its versions, what it may do."""

    name: str
    function: Callable[..., Any]
    is_async: bool
    arguments: ArgumentsCodec
    output: Codec[Any]
    target: str  # how to import it again
    where: str
    doc: str
    versions: Callable[[], Mapping[str, str]]  # read when a run starts or resumes
    permissions: frozenset[str] | None
    on_version_change: Literal["record", "ask"] = "record"
    reads: tuple[Read, ...] = ()
    shadow_first: int = 0  # agreeing shadow runs before the first live one; 0: none needed
    agreement: float = 1.0  # the share of equal writes from which a shadow run agrees
    limits: Limits | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

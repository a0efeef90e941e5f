"""One call of a step or effect, as the protocol sees it: the declaration, the name, the arguments, the snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from milepost.protocol.policy import STARTS_MAX
from milepost.protocol.snapshot import Snapshot
from milepost.protocol.spec import OWN_VERSIONS, EffectSpec, StepSpec, TaskSpec
from milepost.protocol.state import EffectState, StepState
from milepost.records.frozen import slotted
from milepost.records.model import IntentRecorded
from milepost.records.naming import body_of

if TYPE_CHECKING:
    from milepost.protocol.role import Promoted

S = TypeVar("S", StepSpec, EffectSpec)


class Run(Protocol):
    """What all calls of a run have in common; `lease_s` is the lease's length in seconds."""

    run_id: str
    task: TaskSpec
    lease_s: float
    promoted: Promoted | None  # what its task was promoted as, in a live run that needs it


@slotted
class Call(Generic[S]):
    """`encoded` is the canonical JSON of the watched arguments, `fingerprint` its (keyed) digest.

    `unclaimed` lists what was finished or sent on the body's own line and was not called again yet; `outstanding`
    is True for an effect without record where on any line around it something was that was not called again yet.
    `looked_up` is what rule 3 already heard from the provider.
    """

    spec: S
    path: str
    branch: bool
    bound: dict[str, Any]
    encoded: bytes
    fingerprint: str
    item_key: str | None
    run: Run
    snapshot: Snapshot
    unclaimed: Sequence[str] = ()
    outstanding: bool = False
    stood: bool = False  # it was finished, or had sent something, before the plan began
    paths: Sequence[dict[str, Any]] = ()  # descriptors of the files among the arguments
    looked_up: object = None
    planned: tuple[dict[str, Any], bytes, Sequence[dict[str, Any]]] | None = None  # the plan's own, where it was edited
    elsewhere: Sequence[IntentRecorded] = ()  # of the same effect and key= under other paths: applied, or in doubt

    @property
    def run_id(self) -> str:
        return self.run.run_id

    @property
    def task(self) -> TaskSpec:
        return self.run.task

    @property
    def versions(self) -> dict[str, Any]:
        """Return what a checkpoint carries: the task's instructions, tools and model, and this function's own code."""
        of_task = {name: version for name, version in self.snapshot.versions.items() if name not in OWN_VERSIONS}
        return {**of_task, **self.spec.versions}

    @property
    def family(self) -> str:
        started = self.snapshot.started
        return started.family if started else self.run_id

    @property
    def declared(self) -> str:
        """Return the body and the declared name: what all calls of one step in one body have in common."""
        return f"{body_of(self.path)}/{self.spec.name}"

    @property
    def plan_changed(self) -> bool:
        """Say whether this stands where the plan had other calls that are not called yet, and nobody allowed that.

        A person accepts this call, or every call of its name here; or said redo after all of those were finished.
        """
        return bool(self.unclaimed) and not self.is_accepted and not all(map(self.snapshot.redoes, self.unclaimed))

    @property
    def is_accepted(self) -> bool:
        """Say whether a person let this call run in a plan that changed, or all calls of its name in this body."""
        return self.path in self.snapshot.accepted_plan or self.declared in self.snapshot.accepted_names

    @property
    def starts_max(self) -> int:
        """Return how many starts the policy allows before a person is asked."""
        return self.spec.retry.attempts if self.spec.retry is not None else STARTS_MAX

    @property
    def step(self) -> StepState | None:
        return self.snapshot.steps.get(self.path)

    @property
    def effect(self) -> EffectState | None:
        return self.snapshot.effects.get(self.path)

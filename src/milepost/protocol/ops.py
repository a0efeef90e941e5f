"""What the protocol may ask for. A generator yields one of these; a driver carries it out and sends the answer.

At each yield the process may die before it, with it done but not durable, or durable but not told: the
crash points. Operations are data; nothing here acts. `label` names the crash point.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

from milepost.protocol.limits import Rate
from milepost.records.frozen import frozen
from milepost.records.model import Pointer, QuestionAsked, Record
from milepost.records.rows import ClaimRow
from milepost.records.secret import Secret

T = TypeVar("T")
Steps: TypeAlias = Generator["Op", Any, T]
"""A piece of the protocol that ends with a T."""


@frozen
class Op:
    """Base of all operations."""

    @property
    def label(self) -> str:
        return type(self).__name__.lower()


@frozen
class Now(Op):
    """→ Moment."""


@frozen
class Moment:
    """`at` in UTC; `text` as records hold it; `ticks` in seconds on a clock that only goes forward since `boot`."""

    at: datetime
    text: str
    ticks: float
    boot: str = ""

    @property
    def uptime(self) -> str | None:
        """Return boot and ticks as records hold them, None where the boot has no name."""
        return f"{self.boot} {self.ticks:.3f}" if self.boot else None

    def since(self, uptime: str | None) -> float | None:
        """Return the seconds since a recorded uptime; None when it is of another boot, or of none."""
        boot, _, ticks = (uptime or "").rpartition(" ")
        if not boot or boot != self.boot:
            return None
        passed = self.ticks - float(ticks)
        return passed if passed >= 0 else None  # less: a clock that tests or drills set, not this one


@frozen
class Artifact:
    """Bytes that a record of the same append points at. `data` is None when they are a durable file."""

    pointer: Pointer
    data: bytes | None


@frozen
class Append(Op):
    """→ None. Append records in order; with `wait` return when they are durable.

    `starts` marks an append after which a body runs or something is sent: it is held at the gate while the
    run asks, stops or was lost.
    """

    records: Sequence[Record]
    artifacts: Sequence[Artifact] = ()
    wait: bool = False
    starts: bool = False
    claims: Sequence[ClaimRow] = ()

    @property
    def label(self) -> str:
        return "append:" + "+".join(record.kind for record in self.records)


@frozen
class Keep(Op):
    """→ Artifact. Make bytes too large for a row durable as a file."""

    data: bytes
    media_type: str


@frozen
class KeepFiles(Op):
    """→ (list of manifest entries, list of Artifact). Make the files of an output durable, by content."""

    paths: Sequence[str]


@frozen
class Load(Op):
    """→ bytes of an artifact, checked. Raises: CorruptRecord."""

    pointer: Pointer
    what: str


@frozen
class ReadSecrets(Op):
    """→ None. Read secrets that are about to be sent, so that one that is not set is misuse. Raises: BadOption."""

    secrets: Sequence[Secret]


@frozen
class Observe(Op):
    """→ list of Observation, one per descriptor."""

    descriptors: Sequence[Mapping[str, Any]]


@frozen
class Body(Op):
    """→ Ended. Run the user's function of the call in a scope of its own."""


@frozen
class Send(Op):
    """→ Ended, or None: nothing was sent. Run the effect's function with its key: this is what reaches the provider.

    Only while the lease stands, no more than a third of it has passed since `ticks`, and nobody asked for a stop: it
    is looked at in the thread that sends, just before, so that waiting for a thread is waited for, too.
    """

    key: str
    ticks: float


@frozen
class SupplyResult(Op):
    """→ Ended. Run the effect's shadow= on its arguments: what stands in for the provider's result."""


@frozen
class Ended:
    """How a user's function ended: a value or an exception, and what it took."""

    value: object = None
    error: BaseException | None = None
    duration_s: float = 0.0
    spent: dict[str, Any] | None = None
    uncalled: Sequence[str] = ()  # finished records the body, having returned, did not call again
    misused: BaseException | None = None  # what an effect said wrongly while what it sent may have arrived already


@frozen
class Verify(Op):
    """→ the first failed check as (name, reason), or None. Verifiers may be asynchronous."""

    output: object


@frozen
class LookUp(Op):
    """→ Found, NotFound or CannotTell. An exception in the lookup is CannotTell."""

    key: str


@frozen
class Wait(Op):
    """→ None when the recorded time has come. `reason` is shown in the countdown."""

    until: str
    reason: str


@frozen
class Outstanding(Op):
    """→ the paths of what an effect without record may be, and which the plan did not come to.

    Other tasks and threads have their own time: as long as they come to what is missing, it is waited for them.
    """

    request_digest: str


@frozen
class Pace(Op):
    """→ the UTC time (ISO) before which a send has to wait to keep to a rate; None: now. The place is kept for it."""

    rate: Rate


@frozen
class Ask(Op):
    """Never answers: records the question, parks the branch and unwinds it with RunPaused.

    With `once` the first branch that asks records it; others that find the same are only parked. With `ahead` it is
    recorded, not waited for, and the branch goes on: others are asked together with it.
    """

    question: QuestionAsked
    evidence: Artifact | None = None
    once: str = ""
    ahead: bool = False


@frozen
class Park(Op):
    """Never answers: what this branch would ask was asked ahead; it is parked and unwound with RunPaused."""


@frozen
class Within(Op):
    """→ the result of a piece of the protocol that is about another call (an open intent, before the plan runs)."""

    call: Any
    steps: Any


@frozen
class Claim(Op):
    """→ ClaimRow of whoever owns the key: this run, or another. For scope="task"."""

    key: str
    request_digest: str


@frozen
class TakeClaim(Op):
    """→ ClaimRow. Take a key over from a run that nobody works on and that never sent; else its owner's row.

    `accepted`: a person said to take it although the owner may have sent.
    """

    key: str
    request_digest: str
    owner: ClaimRow
    accepted: bool

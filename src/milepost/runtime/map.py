"""`.map`: each item its own checkpoint. On an error nothing new starts, running items finish, then it is raised.

An item that people declined is a decision about that item: the others are carried out, then it is raised.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Iterable, Sequence
from typing import Any

from milepost.errors import BadOption, Declined, Signal
from milepost.runtime.drive import drive_ahead, drive_call
from milepost.runtime.loading import load
from milepost.runtime.scope import AnySpec, RuntimeCall, Scope

CONCURRENCY_MAX = 256
ONE_ITERABLE = (
    "Write `.map(items, concurrency=…)`: what a call takes of several iterables is one item, such as a tuple of `zip`."
)


def check_map(spec: AnySpec, items: object, surplus: Sequence[object], concurrency: object) -> None:
    """Refuse what no `.map` can carry out. Raises: BadOption."""
    where = f"{spec.name}.map"
    if surplus:
        reason = f"expected one iterable, of what each call is given, found {1 + len(surplus)} arguments"
        raise BadOption(where=where, reason=reason, hint=ONE_ITERABLE)
    if not hasattr(items, "__iter__") and not hasattr(items, "__getitem__"):
        raise BadOption(where=where, reason=f"expected an iterable, found {type(items).__name__}", hint=ONE_ITERABLE)
    if type(concurrency) is not int or not 1 <= concurrency <= CONCURRENCY_MAX:
        reason = f"expected 1 to {CONCURRENCY_MAX}, found {concurrency!r}"
        raise BadOption(where=f"{where}, concurrency=", reason=reason, hint="Correct it where .map is called.")


def named_calls(scope: Scope, spec: AnySpec, items: Iterable[Any]) -> list[RuntimeCall]:
    """Name every item in order, before the first one starts: names do not depend on who is faster."""
    return [scope.begin(spec, (item,), {}) for item in items]


def map_calls(calls: list[RuntimeCall], concurrency: int) -> list[Any]:
    """Carry out calls in threads, at most so many at once; results in the order of the items.

    Where items need approval, all of them are asked about first: none has to wait for another's answer.
    Raises: Declined once all others are done, with `results`: in the place of each item its result or its Declined.
    """
    for call in calls if asks_ahead(calls) else ():
        drive_ahead(call)
    if concurrency == 1 or len(calls) < 2:
        return without_declines(calls, [_outcome(call) for call in calls])
    results: list[Any] = [None] * len(calls)
    errors: list[BaseException] = []
    waiting = iter(range(len(calls)))
    lock = threading.Lock()

    def work() -> None:
        while not errors:
            with lock:
                index = next(waiting, None)
            if index is None:
                return
            try:
                results[index] = _outcome(calls[index])
            except BaseException as error:  # noqa: BLE001 – raised below, in the thread that called .map
                errors.append(error)

    load("concurrent.futures.thread")  # here: what needs no threads need not wait for its import
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(concurrency, len(calls)), thread_name_prefix="milepost-map") as pool:
        for _ in range(min(concurrency, len(calls))):
            pool.submit(contextvars.copy_context().run, work)
    raise_first(calls, errors)
    return without_declines(calls, results)


def _outcome(call: RuntimeCall) -> Any:
    """Return the result of a call, or that it was declined."""
    try:
        return drive_call(call)
    except Declined as declined:
        return declined


def without_declines(calls: list[RuntimeCall], results: list[Any]) -> list[Any]:
    """Return the results, or raise the first decline with all of them."""
    declined = next((result for result in results if isinstance(result, Declined)), None)
    if declined is None:
        return results
    calls[0].scope.hear_of(calls)
    raise Declined(**{**declined.facts, "results": results})


def asks_ahead(calls: list[RuntimeCall]) -> bool:
    if len(calls) < 2:
        return False
    declared = calls[0].spec.approving
    return (declared is not None and declared.before) or bool(calls[0].snapshot.declined)


def raise_first(calls: list[RuntimeCall], errors: list[BaseException]) -> None:
    """Raise the first error; a signal goes before everything else."""
    if errors:
        calls[0].scope.hear_of(calls)
        raise next((error for error in errors if isinstance(error, Signal)), errors[0])

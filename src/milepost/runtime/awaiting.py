"""What asynchronous code gets for its calls: something to await.

The drivers of asynchronous code, and asyncio with them, are imported when the first such call is made: a synchronous
task needs neither, and they are a third of what it takes to import us. Called by `api`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any

from milepost.runtime.scope import RuntimeCall


def awaitable(call: RuntimeCall) -> Coroutine[Any, Any, Any]:
    """Return what brings a named call to its end when it is awaited."""
    return call.scope.to_come(call.path, _driver()(call))


@cache
def _driver() -> Callable[[RuntimeCall], Coroutine[Any, Any, Any]]:
    from milepost.runtime.adrive import drive_call_async

    return drive_call_async


def map_calls_async(calls: list[RuntimeCall], concurrency: int) -> Coroutine[Any, Any, list[Any]]:
    """As `map_calls`, on the running loop, when it is awaited."""
    from milepost.runtime.amap import mapped, name_of

    work = mapped(calls, concurrency)
    return calls[0].scope.to_come(name_of(calls), work) if calls else work

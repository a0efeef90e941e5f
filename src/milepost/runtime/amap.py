"""`.map` on an event loop: the same promises as in threads (see `map`), without blocking it.

A TaskGroup that gives up lets running items finish, too. Called by `awaiting`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from milepost.errors import Declined, Signal
from milepost.runtime.adrive import drive_ahead_async, drive_call_async
from milepost.runtime.map import asks_ahead, raise_first, without_declines
from milepost.runtime.scope import RuntimeCall
from milepost.runtime.shield import outlive
from milepost.runtime.unheard import told_by_the_run


def name_of(calls: list[RuntimeCall]) -> str:
    """Say what is awaited, for somebody who forgot to."""
    return f"{calls[0].spec.name}.map of {len(calls)} from {calls[0].path}"


async def mapped(calls: list[RuntimeCall], concurrency: int) -> list[Any]:
    """Carry out calls on the running loop. A TaskGroup that gives up lets running items finish, too."""
    if not calls:
        return []
    errors: list[BaseException] = []

    def cancel(task: asyncio.Task[Any], passed_on: bool) -> None:
        errors.append(asyncio.CancelledError())
        if passed_on:
            task.cancel()

    results = await outlive(_each(calls, concurrency, errors), cancel, calls[0].named_by)
    if any(isinstance(error, Signal) for error in errors):
        told_by_the_run(calls[0].scope.home)
    raise_first(calls, errors)
    return without_declines(calls, results)


async def _each(calls: list[RuntimeCall], concurrency: int, errors: list[BaseException]) -> list[Any]:
    results: list[Any] = [None] * len(calls)
    waiting = iter(range(len(calls)))
    scope, name = calls[0].scope, name_of(calls)

    async def work() -> None:
        scope.begun(name)  # an item is under way from here on: the body waits for that
        for index in waiting:
            if errors:
                return
            try:
                results[index] = await drive_call_async(calls[index])
            except Declined as declined:
                results[index] = declined
            except BaseException as error:  # noqa: BLE001 – raised in the task that called .map
                errors.append(error)

    with suppress(asyncio.CancelledError):  # it is among the errors, with what the items made of it
        for call in calls if asks_ahead(calls) else ():
            scope.begun(name)
            await drive_ahead_async(call)
        await asyncio.gather(*(work() for _ in range(min(concurrency, len(calls)))))
    return results

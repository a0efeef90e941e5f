"""Live updates: told when something changed, bounded in listeners, looking only while somebody listens."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from starlette.requests import Request

from milepost.console.changes import LISTENERS_MAX, Changes, stream
from milepost.errors import StoreUnavailable


class Versions:
    """A store's version as a test sets it; counts how often it was looked at."""

    def __init__(self) -> None:
        self.value: object = 1
        self.looks = 0
        self.fails = False

    def __call__(self) -> object:
        self.looks += 1
        if self.fails:
            raise StoreUnavailable(location="here", operation="look", reason="busy")
        return self.value


def test_a_listener_is_told_once_for_each_change_and_ends_with_the_app() -> None:
    async def listen() -> list[bool]:
        versions, heard = Versions(), []
        changes = Changes(versions, look_s=0.001)
        async with changes.lifespan(None), aclosing(changes.told()) as told:
            waiting = asyncio.ensure_future(anext(told))
            while not versions.looks:
                await asyncio.sleep(0)
            versions.value = 2
            heard.append(await waiting)
            versions.fails = True  # a busy store is a change, and no end of looking
            heard.append(await anext(told))
            versions.fails, versions.value = False, 3
            heard.append(await anext(told))
        return heard

    assert asyncio.run(listen()) == [True, True, True]


def test_nobody_looks_while_nobody_listens() -> None:
    """A console that is left running costs nothing."""

    async def leave() -> tuple[int, bool]:
        versions = Versions()
        changes = Changes(versions, look_s=0.001)
        async with aclosing(changes.told()) as told:
            waiting = asyncio.ensure_future(anext(told))
            while not versions.looks:
                await asyncio.sleep(0)
            versions.value = 2
            await waiting
        looking = changes._looking
        assert looking is not None
        await looking
        return versions.looks, changes.is_full

    looks, is_full = asyncio.run(leave())
    assert looks >= 2
    assert not is_full


def test_a_listener_too_many_is_refused_and_the_others_stay() -> None:
    async def crowd() -> int:
        changes = Changes(Versions(), look_s=0.001)
        changes._listeners |= {asyncio.Event() for _ in range(LISTENERS_MAX)}
        answer = await stream(changes)(Request({"type": "http", "method": "GET", "headers": []}))
        return answer.status_code + len(changes._listeners)

    assert asyncio.run(crowd()) == 503 + LISTENERS_MAX

"""Settled promises reach their loop: all of them, with few wake-ups, also when the loop is gone."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from milepost.runtime.postbox import Postbox, postbox


def counted(loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the wake-ups of a loop."""
    calls: list[int] = []
    wake = loop.call_soon_threadsafe

    def call(callback: Callable[..., Any], *args: Any, **more: Any) -> asyncio.Handle:
        calls.append(1)
        return wake(callback, *args, **more)

    monkeypatch.setattr(loop, "call_soon_threadsafe", call)
    return calls


def test_what_a_commit_settles_reaches_the_loop_with_one_wake_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wake-up for each of two hundred runs was dearer than the commit they shared."""

    async def whole() -> None:
        loop = asyncio.get_running_loop()
        calls = counted(loop, monkeypatch)
        box = Postbox()
        futures: list[asyncio.Future[None]] = [loop.create_future() for _ in range(200)]
        commit = threading.Thread(target=lambda: [box.put(future, None) for future in futures])
        commit.start()
        commit.join()  # the loop stands still meanwhile, as while it runs other bodies
        assert len(calls) == 1
        await asyncio.gather(*futures)

    asyncio.run(whole())


def test_every_promise_of_many_threads_is_kept() -> None:
    """Whatever is put while the box is being emptied is taken along or wakes the loop again."""

    async def whole() -> None:
        loop = asyncio.get_running_loop()
        box = postbox(loop)
        futures: list[asyncio.Future[None]] = [loop.create_future() for _ in range(2000)]
        threads = [
            threading.Thread(target=lambda part=futures[n::8]: [box.put(f, None) for f in part]) for n in range(8)
        ]
        for thread in threads:
            thread.start()
        await asyncio.wait_for(asyncio.gather(*futures), 60)

    asyncio.run(whole())


def test_an_error_reaches_whoever_waits_and_one_who_left_is_skipped() -> None:
    async def whole() -> None:
        loop = asyncio.get_running_loop()
        left, stays = loop.create_future(), loop.create_future()
        left.cancel()
        postbox(loop).put(left, None)
        postbox(loop).put(stays, OSError("full"))
        with pytest.raises(OSError, match="full"):
            await stays

    asyncio.run(whole())


def test_a_closed_loop_hears_nothing_and_harms_nobody() -> None:
    """The thread that commits for all runs must survive a loop that was closed meanwhile."""
    loop = asyncio.new_event_loop()
    box, future = postbox(loop), loop.create_future()
    loop.close()
    box.put(future, None)
    assert not future.done()


def test_what_was_put_for_a_closed_loop_is_let_go_of() -> None:
    """It would keep the loop, its tasks and the runs in them: their leases would be renewed for ever."""
    loop = asyncio.new_event_loop()
    box, gone = postbox(loop), weakref.ref(loop)
    future = loop.create_future()
    loop.close()
    box.put(future, None)
    del loop, future, box
    gc.collect()
    assert gone() is None


def test_each_loop_has_one_postbox_and_is_let_go_of() -> None:
    """A program that makes many loops must not keep them all."""
    loop, other = asyncio.new_event_loop(), asyncio.new_event_loop()
    assert postbox(loop) is postbox(loop)
    assert postbox(loop) is not postbox(other)
    postbox(loop).put(loop.create_future(), None)
    loop.run_until_complete(asyncio.sleep(0))
    gone = weakref.ref(loop)
    loop.close()
    other.close()
    del loop
    gc.collect()
    assert gone() is None

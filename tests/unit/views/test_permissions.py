"""What a task held against what its effects used: counted from records, whatever the order of runs."""

from __future__ import annotations

from typing import Any

import pytest

from milepost import Key, effect, task
from milepost.errors import PermissionMissing
from milepost.runtime.standing import all_runs
from milepost.stores.memory import MemoryStore
from milepost.views.permissions import Permission, permissions_of


@effect(permission="mail:send", provider="mail")
def mail(key: Key) -> None:
    return None


def report(*permissions: str) -> Any:
    """Return the task with these permissions; another day's code, with others, is the same task."""

    @task(name="report", permissions=permissions)
    def declared() -> None:
        mail()

    return declared


HELD = ("mail:send", "door:open")


def counted(store: MemoryStore) -> dict[str, Permission]:
    (found,) = permissions_of(store, all_runs(store), None)
    return found.by_name


def refused(store: MemoryStore, run_id: str) -> None:
    with pytest.raises(PermissionMissing):
        report().options(store=store).run(run_id)


def test_what_was_refused_once_and_given_later_is_used() -> None:
    """The same run, resumed with code that holds it: what happened last counts."""
    store = MemoryStore()
    refused(store, "r")
    assert counted(store)["mail:send"].stands == "refused"
    report(*HELD).options(store=store).resume("r")
    found = counted(store)["mail:send"]
    assert (found.stands, found.used, found.refused, found.held) == ("used", 1, 1, 0)


def test_what_was_used_and_is_refused_now_is_refused() -> None:
    """Somebody took the permission away, and an effect still wants it."""
    store = MemoryStore()
    report(*HELD).options(store=store).run("one")
    refused(store, "two")
    found = counted(store)
    assert (found["mail:send"].stands, found["door:open"].stands) == ("refused", "never used")


def test_a_shadow_run_shows_what_a_live_one_would_use() -> None:
    """Nothing was sent; the permission is needed all the same."""
    store = MemoryStore()
    report(*HELD).options(store=store, shadow=True).run("rehearsal")
    found = counted(store)["mail:send"]
    assert (found.stands, found.used, found.shadowed) == ("used", 0, 1)


def test_what_is_wrong_comes_first() -> None:
    """A list is read from its top."""
    store = MemoryStore()
    report(*HELD).options(store=store).run("one")
    refused(store, "two")
    (found,) = permissions_of(store, all_runs(store), None)
    assert [permission.name for permission in found.listed()] == ["mail:send", "door:open"]
    assert found.to_json()["runs"] == 2

"""Which chains a resume reads: those of the task and of unfinished steps, each once, whatever a key= holds."""

from __future__ import annotations

from typing import Any

import pytest
from desk import Desk

from milepost import step, task
from milepost.errors import StepFailed
from milepost.runtime.opening import read_snapshot

KEYS = ["INV-7", "https://x.org/a?b=1", "a/b", "a[1]", "x]", "[", "a#2", "u[v/w]#3"]


@pytest.fixture
def read(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the chains that are asked for one by one from here on."""
    found: list[str] = []
    records = desk.store.records

    def heard(run_id: str, *, chain: str | None = None, **more: Any) -> Any:
        found.extend([] if chain is None else [chain])
        return records(run_id, chain=chain, **more)

    monkeypatch.setattr(desk.store, "records", heard)
    return found


@step
def innermost(key: str) -> str:
    return key


@step(key=lambda key: key)
def inner(key: str) -> str:
    return innermost(key)


@step(key=lambda key: key)
def outer(key: str) -> list[str]:
    return [inner(other) for other in KEYS]


@step(key=lambda key: key)
def unfinished(key: str) -> str:
    inner(key)
    raise ValueError("stop here")


@task
def keyed_chains() -> None:
    for key in KEYS:
        outer(key)
    unfinished("u/v[w]")


def test_no_chain_inside_a_verified_step_is_read(desk: Desk, read: list[str]) -> None:
    """One query each would make a resume slower the more is done."""
    with pytest.raises(StepFailed):
        desk.run(keyed_chains)
    read.clear()
    opened = read_snapshot(desk.store, "r", None)
    assert opened.refusal is None
    assert len(opened.counts) == 3 + len(KEYS) * (1 + len(KEYS))
    assert read == ["unfinished[u/v[w]]"]


@pytest.mark.parametrize("key", KEYS)
def test_a_body_counts_until_it_or_a_step_around_it_is_verified(desk: Desk, key: str) -> None:
    with pytest.raises(StepFailed):
        desk.run(keyed_chains)
    s = desk.snapshot()
    path = f"outer[{key}]"
    assert (s.counts(path), s.counts_in(path), s.counts_in(f"{path}/inner[{key}]")) == (True, False, False)
    assert not s.counts(f"{path}/inner[{key}]")
    assert (s.counts_in(""), s.counts_in("unfinished[u/v[w]]")) == (True, True)
    assert not s.counts_in("unfinished[u/v[w]]/inner[u/v[w]]")

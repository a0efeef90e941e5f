"""A store with runs and a real console over it, shared by all tests of this folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from browser import a_chromium, by_link
from running import PLANS, Console, a_console


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with a run of each kind."""
    folder = tmp_path_factory.mktemp("console")
    store = folder / "store.sqlite"
    environ = {**os.environ, "MILEPOST_STATE": str(folder / "state"), "XDG_STATE_HOME": str(folder / "state")}
    subprocess.run([sys.executable, str(PLANS), str(store)], cwd=folder, env=environ, check=True)
    return store


@pytest.fixture(scope="session")
def console(filled: Path) -> Iterator[Console]:
    """Return a console over that store, as `milepost ui` starts it."""
    with a_console(filled) as running:
        yield running


@pytest.fixture(scope="session")
def visitor(console: Console) -> Iterator[httpx.Client]:
    """Return somebody who came in by the link."""
    with closing(console.visitor()) as client:
        yield client


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Return a browser, for one module: its loop would be in the way of tests that run their own."""
    with a_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def state(chromium: Any, console: Console, visitor: httpx.Client) -> Any:
    """Return the cookies of somebody who came in after the visitor did."""
    return by_link(chromium, console)

"""Fixtures of the tamper tests: a run that stopped half-way, with and without a seal key, copied for each attempt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
import tampering
from tampering import KEYS, Scene

Built: TypeAlias = tuple[Path, dict[str, str], bytes | None]


@pytest.fixture(scope="session", params=list(KEYS))
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("built") / request.param
    accepted = tampering.stop_half_way(folder, KEYS[request.param])
    assert len(accepted) == 8, "both runs posted four lines each"
    return folder, accepted, KEYS[request.param]


@pytest.fixture
def scenes(built: Built, tmp_path: Path) -> Callable[[], Scene]:
    """Set the scene anew, as often as a test tries something."""
    folder, accepted, seal_key = built
    numbers = iter(range(10_000))
    return lambda: tampering.set_scene(folder, accepted, tmp_path / str(next(numbers)), seal_key)


@pytest.fixture
def scene(scenes: Callable[[], Scene]) -> Scene:
    return scenes()

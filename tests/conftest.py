"""What every test gets: a state folder of its own for witnesses, and no store or key from outside."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    for name in ("MILEPOST_STORE", "MILEPOST_SEAL_KEY", "MILEPOST_RUN", "MILEPOST_CRASH_AT", "MILEPOST_CRASH_LOG"):
        monkeypatch.delenv(name, raising=False)
    return folder

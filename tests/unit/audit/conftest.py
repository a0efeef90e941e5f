"""The told run, exported once in every form: with a seal key and without."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from told_run import KEY, SECRET, exported, tell_a_run, write_file

from milepost.audit.files import FORMS
from milepost.stores.contract import Store

KEYS = {"keyed": KEY, "unkeyed": None}


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Store]:
    """Return the store of each run, told once."""
    os.environ["QUEUE_TOKEN"] = SECRET
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("told-state"))
    return {name: tell_a_run(key) for name, key in KEYS.items()}


@pytest.fixture(scope="session")
def files(stores: dict[str, Store], tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], bytes]:
    """Return the bytes of each file, by key and form."""
    folder, found = tmp_path_factory.mktemp("exported"), {}
    for name, store in stores.items():
        for form in FORMS:
            path = folder / f"{name}.{form}"
            write_file(exported(store, KEYS[name]), FORMS[form], path)
            found[name, form] = path.read_bytes()
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return where a test puts the file it changed."""
    return tmp_path / "record"

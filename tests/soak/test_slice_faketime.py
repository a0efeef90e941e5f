"""One run end to end while the machine's own clock jumps under it, by libfaketime."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from faked_clock_plan import JUMPS

from milepost.runtime.verify import verify_run
from milepost.stores.sqlite.store import SqliteStore

PROGRAM = Path(__file__).with_name("faked_clock_plan.py")
LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))


def start(folder: Path) -> subprocess.CompletedProcess[str]:
    """Start the program under a clock that it can set. Only wall clocks jump: the monotonic one must not."""
    environ: Mapping[str, str] = {
        **os.environ,
        "LD_PRELOAD": str(LIBRARIES[0]),
        "FAKETIME_TIMESTAMP_FILE": str(folder / "offset"),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    return subprocess.run([sys.executable, str(PROGRAM)], cwd=folder, env=environ, capture_output=True, text=True)


@pytest.mark.skipif(not LIBRARIES, reason="libfaketime is not installed (Debian: faketime)")
def test_a_run_survives_a_machine_whose_clock_jumps(tmp_path: Path) -> None:
    """Back and forward by hours and days, in steps, in a send whose answer is lost, and before a wait."""
    (tmp_path / "offset").write_text("+0", encoding="ascii")
    first = start(tmp_path)
    assert "TimeoutError" in first.stderr, first.stderr
    second = start(tmp_path)
    assert json.loads(second.stdout) == [*JUMPS, "free"], second.stderr
    sent = (tmp_path / "ledger").read_text(encoding="ascii").split()
    assert len(sent) == len(set(sent)) == len(JUMPS), "nothing was sent twice"
    with closing(SqliteStore(tmp_path / "store.sqlite", create=False)) as store:
        assert all(verdict.ok for verdict in verify_run(store, "r", None, os.environ))
        bodies = [json.loads(record.body) for record in store.records("r")]
    times = [body["at"] for body in bodies]
    assert times != sorted(times), "the control: the clock did go back"
    assert min(body.get("duration_s") or 0 for body in bodies) >= 0

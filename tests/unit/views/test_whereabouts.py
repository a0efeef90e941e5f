"""Where a run goes on: what lies beside the store that was found, unless the store was named from elsewhere."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from milepost.errors import UnknownTask
from milepost.records.model import Pointer, RunStarted
from milepost.stores.locate import USUAL
from milepost.views.whereabouts import whereabouts

AT = "2026-11-02T09:00:00.000000+00:00"


@pytest.fixture
def p(tmp_path: Path) -> Path:
    """A project with a store, a plan and a folder below."""
    project = tmp_path / "p"
    for file in (USUAL, "plan.py", "below/data"):
        (project / file).parent.mkdir(parents=True, exist_ok=True)
        (project / file).touch()
    return project


def started(folder: Path, target: str) -> RunStarted:
    about = {"inputs": Pointer("0", 0), "inputs_fingerprint": "f", "versions": {}, "family": "one"}
    return RunStarted(at=AT, task="t", target=target, folder=str(folder), **about)  # type: ignore[arg-type]


def goes_on(p: Path, target: str, here: Path, monkeypatch: pytest.MonkeyPatch, store: Path | None = None) -> str:
    """Return target and folder of a run of p/below, from `here`, relative to what is around the projects."""
    monkeypatch.chdir(here)
    location = str((store or here) / USUAL)
    found = whereabouts(started(p / "below", target), location, "one")
    return f"{found.target} in {found.folder}".replace(f"{p.parent}/", "")


def test_the_project_itself_goes_on_as_recorded(p: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert goes_on(p, f"{p}/plan.py:t", p, monkeypatch) == "p/plan.py:t in p/below"
    link = p.with_name("link")
    link.symlink_to(p)
    assert goes_on(p, f"{p}/plan.py:t", link, monkeypatch) == "p/plan.py:t in p/below"


@pytest.mark.parametrize("target", ["{p}/plan.py:t", "plans.module:t", "{p}/../shared.py:t"])
def test_a_copy_goes_on_in_the_copy(p: Path, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module is looked for there, too; a file that belongs to no project is the same one."""
    (p.parent / "shared.py").touch()
    q = shutil.copytree(p, p.with_name("q"))
    target = target.format(p=p).replace("/p/..", "")
    here = "q/plan.py:t" if "plan.py" in target else target.replace(f"{p.parent}/", "")
    assert goes_on(p, target, q, monkeypatch) == f"{here} in q/below"
    assert goes_on(p, target, p, monkeypatch, store=q).endswith(" in p/below"), "named, not found from here"


def test_a_store_that_lies_beside_nothing_of_the_run_goes_on_as_recorded(
    p: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was named when the run began."""
    shutil.move(p / USUAL.parent, p.parent / "q" / USUAL.parent)
    assert goes_on(p, f"{p}/plan.py:t", p.parent / "q", monkeypatch) == "p/plan.py:t in p/below"


def test_a_file_that_was_not_copied_is_asked_for(p: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    q = shutil.copytree(p, p.with_name("q"))
    (q / "plan.py").unlink()
    with pytest.raises(UnknownTask, match="not copied with the store: there is no ") as told:
        goes_on(p, f"{p}/plan.py:t", q, monkeypatch)
    assert "`milepost resume one --task FILE.py:t`" in told.value.hint

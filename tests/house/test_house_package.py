"""The wheel as a stranger gets it: built, installed into a fresh environment, and used."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from doc_page import Reader
from source_tree import ROOT

pytestmark = pytest.mark.slow
NOT_SHIPPED = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "dist", ".milepost")


def done(*command: str | Path, **options: object) -> str:
    """Run a command and return what it printed; what went wrong is in the failure."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return str(ended.stdout)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of the sources, through the sdist, as `make wheel` does."""
    folder = tmp_path_factory.mktemp("build")
    shutil.copytree(ROOT, folder / "source", ignore=NOT_SHIPPED)
    done(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", folder / "source")
    (built,) = (folder / "dist").glob("*.whl")
    return built


def test_the_wheel_holds_what_the_library_reads(wheel: Path) -> None:
    """Types, SQL, the licence and the example program travel along; nothing compiled does."""
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "milepost/py.typed",
        "milepost/stores/sqlite/schema.sql",
        "milepost/stores/sqlite/queries.sql",
        "milepost/stores/sqlite/migrations/0001_initial.sql",
        "milepost/audit/page.css",
        "milepost/examples/invoices/reconcile.py",
        "milepost/examples/invoices/month/truth.json",
    ):
        assert needed in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert [name for name in names if name.endswith(".pyc") or name.startswith("tests")] == []


def test_a_stranger_installs_it_and_the_readme_works(wheel: Path, tmp_path: Path, monkeypatch) -> None:
    """The first minute decides: a fresh environment, the wheel, the README."""
    done(sys.executable, "-m", "venv", tmp_path / "fresh")
    programs = tmp_path / "fresh" / "bin"
    done(programs / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    monkeypatch.setenv("PYTHONPATH", sysconfig.get_path("purelib"))  # the dependencies, without another download
    where = done(programs / "python", "-c", "import milepost; print(milepost.__file__)", cwd=tmp_path)
    assert where.startswith(str(tmp_path))
    assert "Usage: milepost" in done(programs / "milepost", "--help", cwd=tmp_path)
    reader = tmp_path / "reader"
    reader.mkdir()
    Reader(reader, programs=programs).follow(ROOT / "README.md")

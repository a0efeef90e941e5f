"""Imports go down only; optional things are not imported before they are needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from source_tree import ROOT


def test_imports_go_down_never_up_never_sideways() -> None:
    """The picture in CONTRIBUTING.md is proven by import-linter; a module without a floor fails too."""
    command = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_importing_the_library_brings_no_command_line() -> None:
    """A program that only runs tasks does not pay for click, rich or pydantic at its start."""
    probe = (
        "import sys, milepost; print([m for m in ('click', 'rich', 'pydantic', 'milepost.cli') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

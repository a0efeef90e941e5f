"""The invoice example under its own drill, a sample of each kind of trial; `make drill` tries every point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from invoices import drilled
from invoices.reconcile import reconcile

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_month_survives_interruptions(drill: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the README shows is tried here: each kind of trial, in a world of real services."""
    monkeypatch.setenv("INVOICES_DRILL_MAILS", "4")
    report = drill(reconcile, month="2026-10", setup=drilled.month, observe=drilled.outside, points=2)
    assert report.effect_count >= 2
    assert report.total()["tried"] > 15

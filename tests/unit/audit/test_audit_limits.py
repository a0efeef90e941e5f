"""The limits of a task as the page of an audit record says them."""

from __future__ import annotations

from milepost.audit.html_sections import _limit


def test_a_rate_is_said_in_words() -> None:
    """An auditor reads the page, and no notation of a programming language."""
    assert _limit("sends", {"count": 100, "per_s": 60.0}) == "sends 100 in 60 s"
    assert _limit("resumes", 3) == "resumes 3"

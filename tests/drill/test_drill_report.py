"""What a report says, made by hand: hostile text in JUnit XML, the size of the drill that the docs time."""

from __future__ import annotations

from io import BytesIO
from xml.etree import ElementTree

import ten_steps
from drilling import drilled

from milepost.drill.junit import write_junit
from milepost.drill.outcome import Outcome, Report, Verdict

HOSTILE = "\x00\x1b[31m]]> <b> & \ud800 \ufffe"


def test_whatever_a_process_printed_a_build_server_can_read() -> None:
    """XML knows no control characters and no lone surrogates; a user's output has both."""
    failed = Outcome("kill", HOSTILE, Verdict.FAILED, HOSTILE, HOSTILE, output=HOSTILE)
    out = BytesIO()
    write_junit(Report(task=HOSTILE, outcomes=[failed]), out)
    (case,) = ElementTree.fromstring(out.getvalue()).iter("testcase")
    failure = case.find("failure")
    assert failure is not None
    assert "\\x00\\x1b[31m]]> <b> & \\ud800 \\ufffe" in (failure.text or "")


def test_the_drill_that_the_docs_time_has_ten_steps_and_five_effects() -> None:
    report = drilled(ten_steps.ten, "send:durable:3", observe=ten_steps.ledger)
    assert report.held
    assert (report.step_count, report.effect_count) == (10, 5)

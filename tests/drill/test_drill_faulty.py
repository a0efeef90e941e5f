"""Each planted mistake is reported by the name of the step or effect that makes it. Zeros prove nothing otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import faulty_tasks as faulty
import pytest
from drilling import drilled

from milepost.drill.outcome import Report
from milepost.drill.telling import lines
from milepost.errors import MisuseError


def told(report: Report) -> str:
    assert not report.held
    return "\n".join(lines(report))


def test_a_write_outside_in_a_plain_step_is_repeated_and_named() -> None:
    """The commonest mistake: a mail sent in a step goes out again when the process dies before its checkpoint."""
    report = drilled(faulty.writes_in_a_step, "body:durable:1", observe=faulty.ledger)
    assert report.total()["repeated"] == 1
    assert "the outside has 2 more than undisturbed" in told(report)
    assert "UNDECLARED  step mail_all connects to 127.0.0.1:" in told(report)


def test_chance_between_steps_is_named_with_the_call_that_gets_it() -> None:
    report = drilled(faulty.draws_between_steps, points=2)
    assert report.unsteady
    assert "NOT STEADY  draw gets other inputs each time: $.number" in told(report)


def test_a_plan_that_differs_on_resume_does_not_survive() -> None:
    """The resume itself notices: the step's inputs are no longer those it was verified with."""
    report = drilled(faulty.draws_between_steps, "append:step_started:durable:2")
    assert "it asks source_changed: " in told(report)
    assert "draw" in report.failed[0].said


def test_a_file_outside_the_world_is_named_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRILL_ELSEWHERE", str(tmp_path))
    (effect,) = drilled(faulty.writes_elsewhere, "versions").side_effects
    assert (effect.who, effect.kind, effect.what) == ("leave", "file", str(tmp_path / "left.txt"))
    assert effect.line.startswith(f"{faulty.__file__}:")


def test_a_process_started_in_a_step_is_named_unless_it_is_allowed() -> None:
    report = drilled(faulty.starts_a_process, "versions")
    assert "UNDECLARED  step compute starts" in told(report)
    assert "--allow compute:process" in told(report)
    assert drilled(faulty.starts_a_process, "versions", allow=("compute:process",)).held


def test_a_connection_between_steps_is_the_plans() -> None:
    """Code between steps runs again on every resume: whatever it does to the outside happens again, too."""
    report = drilled(faulty.connects_between_steps, "versions")
    assert "UNDECLARED  the plan connects to 127.0.0.1:" in told(report)
    assert drilled(faulty.connects_between_steps, "versions", allow=("plan",)).held


def test_a_lookup_that_lies_is_named(tmp_path: Path) -> None:
    """Without observe, too: the drill saw the provider accept what the lookup says was never there."""
    (tmp_path / "send-durable-1").mkdir()
    (tmp_path / "send-durable-1" / "precious").touch()
    report = drilled(faulty.lookup_lies, "send:durable:1", "send:before:1", keep=tmp_path)
    (failed,) = report.failed
    assert failed.point == "send:durable:1"
    assert "effect book was sent again: its lookup said not found" in told(report)
    assert (tmp_path / "send-durable-1-2" / "store" / "store.sqlite").exists()
    assert [file.name for file in (tmp_path / "send-durable-1").iterdir()] == ["precious"]


def test_a_provider_without_keys_declared_as_if_it_had_them_is_noticed_outside() -> None:
    report = drilled(faulty.believes_in_keys, "lost:order", observe=faulty.ledger)
    assert "the outside has 1 more than undisturbed" in told(report)


def test_what_is_in_no_output_is_missing_after_a_crash() -> None:
    report = drilled(faulty.keeps_it_in_memory, "append:step_started:durable:2")
    assert 'result[0]: "alpha" → ' in told(report) or "result" in report.failed[0].differences[0]


def test_a_rate_limit_that_loses_the_effect_is_named() -> None:
    report = drilled(faulty.gives_up_at_once, "busy:notify")
    assert report.total()["skipped"] == 1
    assert "notify did not happen" in told(report)


def test_a_task_that_fails_undisturbed_is_refused_with_its_own_words() -> None:
    with pytest.raises(MisuseError, match="no such month"):
        drilled(faulty.always_fails)


def test_an_unknown_point_is_refused() -> None:
    with pytest.raises(MisuseError, match="no point 'send:durable:9'"):
        drilled(faulty.keeps_it_in_memory, "send:durable:9")


def test_a_task_made_inside_a_function_is_refused() -> None:
    from milepost import task

    @task
    def inner() -> int:
        return 1

    with pytest.raises(MisuseError, match="at the top of a module"):
        drilled(inner)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"setup": faulty.setup_fails}, "no world today"),
        ({"teardown": faulty.teardown_fails}, "the lights stay on"),
        ({"observe": faulty.cannot_see}, "no ledger today"),
    ],
)
def test_a_setup_teardown_or_observe_that_fails_says_so(given: dict[str, Any], said: str) -> None:
    """Then the drill says nothing about the task, and must not look as if it did."""
    with pytest.raises(MisuseError, match=said):
        drilled(faulty.keeps_it_in_memory, **given)


def test_a_process_that_hangs_is_killed_and_its_trial_failed() -> None:
    report = drilled(faulty.hangs_when_drilled, "body:durable:1", patience_s=10)
    assert "the process did not end in time" in told(report)

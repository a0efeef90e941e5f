"""A user's function is a source that a later process can ask again, by name and by nothing else."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import pytest

from milepost.errors import BadOption, SourceUnavailable
from milepost.sources import Call, Observation, observe

answer: object = {"rate": 1}


def rate() -> object:
    if isinstance(answer, Exception):
        raise answer
    return answer


def needs(month: str) -> str:
    return month


async def later() -> int:
    return 1


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def look(value: object, monkeypatch: pytest.MonkeyPatch) -> Observation:
    monkeypatch.setattr(sys.modules[__name__], "answer", value)
    return observe(Call(rate).descriptor(), seal_key=b"key")


def test_result_counts_as_data_whatever_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    before = look({"a": 1, "b": [2.5, None]}, monkeypatch)
    assert look({"b": [2.5, None], "a": 1}, monkeypatch) == before
    assert look({"b": [2.5, None], "a": 2}, monkeypatch).fingerprint != before.fingerprint


def test_bytes_and_the_text_that_looks_like_them_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    assert look(b'"x"', monkeypatch).fingerprint != look("x", monkeypatch).fingerprint


def test_none_means_there_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert look(None, monkeypatch).fingerprint is None


@pytest.mark.parametrize("value", [{1, 2}, object(), float("nan"), {1: 2}, (1, 2)])
def test_result_that_is_no_data_is_the_callers_mistake(value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadOption, match=r"its result, at \$.*found"):
        look(value, monkeypatch)


@pytest.mark.parametrize(
    "error", [ValueError("no rate today"), Unprintable(), OSError(9, "bad", 7), KeyError("x" * 9999)]
)
def test_function_that_raises_cannot_be_told(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceUnavailable) as caught:
        look(error, monkeypatch)
    assert caught.value.__cause__ is error
    assert len(str(caught.value)) < 500


def test_functions_no_other_process_could_find_are_refused() -> None:
    def inner() -> int:
        return 1

    for function, reason in (
        (lambda: 1, "lambda"),
        (inner, "function inside a function"),
        (functools.partial(needs, "x"), "expected a function defined with def"),
        (Path("x").exists, "expected a function defined with def"),
        (later, "coroutine"),
        (needs, "needs month"),
    ):
        with pytest.raises(BadOption, match=reason):
            Call(function)  # type: ignore[arg-type]


def test_resume_finds_the_function_by_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rates_of_today.py").write_text("def rate():\n    return [1]\n\nalias = rate\nfrom os import getcwd\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert observe({"kind": "call", "name": "rates_of_today:rate"}, seal_key=None).size == 3
    for name in ("rates_of_today:alias", "rates_of_today:getcwd", "rates_of_today:gone", "no_such_module:rate"):
        with pytest.raises(SourceUnavailable):
            observe({"kind": "call", "name": name}, seal_key=None)


def test_function_of_a_script_is_known_by_the_scripts_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """`python reconcile.py` runs it as `__main__`; `milepost resume` loads it under its file's name."""
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "/somewhere/reconcile.py", raising=False)
    monkeypatch.setattr(rate, "__module__", "__main__")
    assert Call(rate).descriptor() == {"kind": "call", "name": "reconcile:rate"}
    assert observe(Call(rate).descriptor(), seal_key=None).fingerprint is not None

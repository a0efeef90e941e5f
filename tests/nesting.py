"""A task whose steps stand side by side, and one whose steps nest."""

from __future__ import annotations

from milepost import step, task


@step
def one() -> int:
    return 1


@step
def both() -> int:
    return one() + one()


@task
def flat() -> int:
    return one() + one()


@task
def nested() -> int:
    return one() + both()

"""A task of ten steps and five effects, for the time that a whole drill takes: `milepost drill ten_steps.py:ten`."""

from __future__ import annotations

from datetime import timedelta

from drill_desk import found_at, ledger, post_to

from milepost import Applied, Found, Key, NotFound, effect, step, task

__all__ = ["ledger"]


def find(key: Key, number: int) -> Found[str] | NotFound:
    return found_at("looked-up", key)


@step
def compute(number: int) -> int:
    return number + 1


@effect(key=lambda number: str(number), lookup=find, settle=timedelta(0))
def book(key: Key, number: int) -> Applied[str]:
    ref = post_to("looked-up", key, str(number))
    return Applied(ref, ref=ref)


@task
def ten() -> list[str]:
    booked = []
    number = 0
    for _ in range(5):
        number = compute(compute(number))
        booked.append(book(number))
    return booked

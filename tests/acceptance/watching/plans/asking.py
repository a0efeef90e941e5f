"""A plan that asks: its step fails until a file is there, and the third failure is a question."""

from __future__ import annotations

from pathlib import Path

from milepost import Retry, step, task


@step(retry=Retry(on=ConnectionError, attempts=1))
def fetch(what: str) -> str:
    if not Path("there").exists():
        raise ConnectionError(f"no {what} ![x](http://evil.test/?leak) <!channel> @here \u202e\x1b[2J")
    return what


@task
def fetches(what: str = "mail") -> str:
    return fetch(what)

"""The client the drilled tasks share: speaks to the drill's test provider, in one of its characters."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from typing import Any

from milepost import Found, Key, NotFound


class Unanswered(Exception):
    """No answer came: nobody knows."""


def ask(method: str, path: str, key: object = None, body: object = None) -> Any:
    """Ask the provider of this world; None when it does not know. Raises: Unanswered."""
    content = None if body is None else json.dumps(body).encode()
    headers = {"Idempotency-Key": str(key)} if key is not None else {}
    request = urllib.request.Request(f"{os.environ['MILEPOST_DRILL_PROVIDER']}/{path}", content, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise
    except OSError as error:
        raise Unanswered(str(error)) from error


def post_to(character: str, key: object, word: str) -> str:
    ref: str = ask("POST", character, key, {"word": word})["ref"]
    return ref


def found_at(character: str, key: Key) -> Found[str] | NotFound:
    answer = ask("GET", f"{character}/{key}")
    return NotFound() if answer is None else Found(answer["ref"], ref=answer["ref"])


def ledger() -> Any:
    """Return what the provider of this world applied; the keys are Milepost's and the same in every world."""
    return ask("GET", "ledger")

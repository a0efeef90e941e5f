"""A stand-in for a model provider: speaks the Anthropic and OpenAI wire formats, answers by rules.

The same text always brings the same answer and the same token counts, so a demo without a key is repeatable; it
is no model and says so in its name. `GET /calls` counts, `POST /misbehave {"next": [...]}` orders trouble.
Run: `python -m invoices.world.model [--port 0]`.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Callable
from typing import Any

from invoices.world.http import Answer, Dropped, Reply, Request, Service, Silence
from invoices.world.reading import invoice_fields

CHARACTERS_PER_TOKEN = 4
TROUBLE: dict[str, Reply] = {
    "rate-limited": Answer(429, {"error": {"type": "rate_limit_error"}}, {"Retry-After": "3"}),
    "overloaded": Answer(529, {"error": {"type": "overloaded_error"}}),
    "broken": Answer(500, {"error": {"type": "api_error"}}),
    "bad-key": Answer(401, {"error": {"type": "authentication_error"}}),
    "dropped": Dropped(),
    "silent": Silence(),
}
"""Answers without a call carried out; "garbage" and "prose" are carried out and answer nonsense."""
NONSENSE = {"garbage": '{"number": "INV-1", "lines": [{"quantity": "many"', "prose": "I cannot read this page."}


class Model:
    """Counts calls and answers them."""

    def __init__(self) -> None:
        self._alone = threading.Lock()
        self._calls = 0
        self._next: list[str] = []

    def anthropic(self, request: Request) -> Reply:
        """Answer one Messages request."""
        return self._call(request, _as_anthropic)

    def openai(self, request: Request) -> Reply:
        """Answer one chat-completions request."""
        return self._call(request, _as_openai)

    def calls(self, _request: Request) -> Answer:
        """Answer how many calls were carried out since the process started."""
        with self._alone:
            return Answer(200, {"calls": self._calls})

    def misbehave(self, request: Request) -> Answer:
        """Order trouble for the next calls, by name, in order."""
        wanted = request.body.get("next") if isinstance(request.body, dict) else None
        known = {*TROUBLE, *NONSENSE}
        if not isinstance(wanted, list) or not set(wanted) <= known:
            return Answer(400, {"error": f"expected a list of {sorted(known)} as 'next'"})
        with self._alone:
            self._next = list(wanted)
        return Answer(200, {"next": wanted})

    def _call(self, request: Request, wrap: Callable[[str, str, int, int], dict[str, Any]]) -> Reply:
        prompt = _prompt_of(request.body)
        if prompt is None:
            return Answer(400, {"error": {"type": "invalid_request_error"}})
        with self._alone:
            trouble = self._next.pop(0) if self._next else ""
            if trouble in TROUBLE:
                return TROUBLE[trouble]
            self._calls += 1
        text = NONSENSE.get(trouble) or json.dumps(invoice_fields(prompt))
        return Answer(200, wrap(request.body["model"], text, _tokens(prompt), _tokens(text)))


def _prompt_of(body: Any) -> str | None:
    try:
        contents = [message["content"] for message in body["messages"]]
        return "\n".join(contents) if isinstance(body["model"], str) else None
    except (TypeError, KeyError):
        return None


def _tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def _as_anthropic(model: str, text: str, tokens_in: int, tokens_out: int) -> dict[str, Any]:
    return {
        "id": "msg_local",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": tokens_in, "output_tokens": tokens_out},
    }


def _as_openai(model: str, text: str, tokens_in: int, tokens_out: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": "chatcmpl-local",
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": tokens_in, "completion_tokens": tokens_out},
    }


def main() -> None:
    """Serve until the starter goes away."""
    parser = argparse.ArgumentParser(prog="invoices.world.model", description="A model provider's stand-in.")
    parser.add_argument("--port", type=int, default=0)
    model = Model()
    routes = {
        ("POST", "/v1/messages"): model.anthropic,
        ("POST", "/v1/chat/completions"): model.openai,
        ("GET", "/calls"): model.calls,
        ("POST", "/misbehave"): model.misbehave,
    }
    Service(parser.parse_args().port, routes).serve_until_stopped()


if __name__ == "__main__":
    main()

"""The console as an ASGI app: its pages, each with a `.json` twin, behind the gate. Every error is a page that helps.

Handlers are plain functions: Starlette runs them in threads, so that a slow store never holds up another visitor.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Scope

from milepost.console.changes import stream
from milepost.console.gate import Gate
from milepost.console.pages import artifact, health, inbox, journal, question, role, run, runs, shadow, step
from milepost.console.pages.asked import Asked
from milepost.console.peer import OwnAccount
from milepost.console.statics import static_route
from milepost.console.wiring import Console
from milepost.errors import (
    MilepostError,
    MisuseError,
    QuestionUnknown,
    RefusedError,
    RunUnknown,
    StepUnknown,
    UnavailableError,
)
from milepost.views.errors import error_object


@dataclass(frozen=True, slots=True)
class Page:
    """One page: where it is, the template that shows it, the function that gathers what it shows."""

    path: str
    template: str
    gather: Callable[[Console, Asked], dict[str, Any]]


PAGES = (
    Page("/inbox", "inbox.html", inbox.gather),
    Page("/question", "question.html", question.gather),
    Page("/runs", "runs.html", runs.gather),
    Page("/run", "run.html", run.gather),
    Page("/check", "check.html", run.gather_check),
    Page("/seals", "seals.html", run.gather_seals),
    Page("/step", "step.html", step.gather),
    Page("/journal", "journal.html", journal.gather),
    Page("/shadow", "shadow.html", shadow.gather),
    Page("/map", "map.html", role.gather),
    Page("/health", "health.html", health.gather),
)
NOT_THERE = (RunUnknown, QuestionUnknown, StepUnknown)


def build(console: Console) -> ASGIApp:
    """Return the app of a console, gate included."""
    routes = [
        Route("/", lambda request: RedirectResponse("/inbox")),
        *(route for page in PAGES for route in _routes(console, page)),
        Route("/answer", _answering(console), methods=["POST"]),
        Route("/artifact", lambda request: artifact.send(console, Asked(request.query_params))),
        Route("/events", stream(console.changes)),
        Route("/signin", lambda request: _sign_in(console, request, ""), methods=["GET"]),
        Route("/signout", lambda request: RedirectResponse("/signin", 303), methods=["POST"]),
        static_route(),
    ]
    handlers: Mapping[Any, Any] = {
        MilepostError: _told(console),
        HTTPException: _not_found(console),
        Exception: _bug(console),
    }
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=console.changes.lifespan)
    return Gate(
        app,
        console.people,
        console.hosts,
        sign_in=lambda request, why: _sign_in(console, request, why, HTTPStatus.UNAUTHORIZED),
        is_secure=console.url.startswith("https://"),
        port=console.port,
        on_entered=console.on_entered,
        may_connect=_owners_only() if console.owners_only else lambda scope: True,
    )


def _owners_only() -> Callable[[Scope], bool]:
    account = OwnAccount()
    return lambda scope: account.is_at(scope.get("client"), scope.get("server"), time.monotonic())


# ── pages ──


def _routes(console: Console, page: Page) -> list[Route]:
    def shown(request: Request) -> Response:
        found = page.gather(console, Asked(request.query_params))
        return HTMLResponse(_rendered(console, request, page.template, page=found))

    def told(request: Request) -> Response:
        return _json(page.gather(console, Asked(request.query_params)))

    return [Route(page.path, shown), Route(f"{page.path}.json", told)]


def _rendered(console: Console, request: Request, template: str, **values: Any) -> str:
    visit = request.scope.get("state", {}).get("visit")
    path = request.scope["path"]
    query = request.scope["query_string"].decode("ascii", "replace")
    twin = f"{path}.json" + (f"?{query}" if query else "")
    return console.templates.render(
        template,
        visit=visit,
        path=path,
        twin=twin,
        waiting=_waiting(console) if visit else 0,
        store=console.door.location,
        proxied=bool(console.people.proxy),
        **values,
    )


def _waiting(console: Console) -> int:
    """Return how many questions wait; 0 when the store cannot say, which the page itself tells."""
    try:
        return question.still_open(console)
    except MilepostError:
        return 0


def _json(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value, indent=2, default=str) + "\n", status, media_type="application/json")


def _answering(console: Console) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        state = request.scope["state"]
        found = question.answer(console, state["visit"].identity, state["form"])
        if found.to and not found.refused:
            return RedirectResponse(found.to, 303)
        status = HTTPStatus.CONFLICT if found.refused else HTTPStatus.OK
        return HTMLResponse(_rendered(console, request, "answered.html", page=found.as_data()), status)

    return answer


def _sign_in(console: Console, request: Request, why: str, status: int = 200) -> Response:
    """Return the page where one signs in; a program that asked for JSON gets JSON."""
    if request.scope["path"].endswith((".json", "/events", "/artifact")):
        about = {
            "code": "signed-out",
            "message": why or "Nobody is signed in.",
            "hint": "Send a named token as Bearer.",
        }
        return _json({"error": about}, status)
    query = request.scope["query_string"].decode("ascii", "replace")
    to = (
        "/"
        if request.scope["path"] == "/signin" or "token=" in query
        else request.scope["path"] + (f"?{query}" if query else "")
    )
    values = {
        "why": why,
        "to": to,
        "takes_tokens": bool(console.people.named),
        "takes_links": console.people.owner is not None,
    }
    return HTMLResponse(_rendered(console, request, "signin.html", page=values), status)


# ── errors ──


def _told(console: Console) -> Callable[[Request, Exception], Response]:
    def told(request: Request, error: Exception) -> Response:
        assert isinstance(error, MilepostError)
        return _trouble(console, request, error_object(error), _status(error))

    return told


def _status(error: MilepostError) -> int:
    if isinstance(error, NOT_THERE):
        return HTTPStatus.NOT_FOUND
    if isinstance(error, UnavailableError):
        return HTTPStatus.SERVICE_UNAVAILABLE
    if isinstance(error, MisuseError):
        return HTTPStatus.BAD_REQUEST
    return HTTPStatus.CONFLICT if isinstance(error, RefusedError) else HTTPStatus.INTERNAL_SERVER_ERROR


def _not_found(console: Console) -> Callable[[Request, Exception], Response]:
    def told(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        about = {
            "code": "no-such-page",
            "message": f"{error.detail}.",
            "hint": "Go on from the inbox or the list of runs.",
        }
        return _trouble(console, request, about, error.status_code)

    return told


def _bug(console: Console) -> Callable[[Request, Exception], Response]:
    """Answer an error of our own; Starlette raises it again, so that its traceback stands where we were started."""

    def told(request: Request, error: Exception) -> Response:
        about = {
            "code": "bug",
            "message": f"This page could not be made: {type(error).__name__}. What is recorded stands.",
            "hint": "This is a bug in Milepost; please report it with what the console wrote where it was started.",
        }
        return _trouble(console, request, about, HTTPStatus.INTERNAL_SERVER_ERROR)

    return told


def _trouble(console: Console, request: Request, about: Mapping[str, Any], status: int) -> Response:
    if request.scope["path"].endswith(".json"):
        return _json({"error": about}, status)
    return HTMLResponse(_rendered(console, request, "trouble.html", page=about), status)

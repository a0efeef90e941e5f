"""The console as an ASGI app: its pages, each with a `.json` twin, behind the gate. Every error is a page that helps.

Handlers are plain functions: Starlette runs them in threads, so that a slow store never holds up another visitor.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from milepost.console.changes import stream
from milepost.console.gate import Gate
from milepost.console.pages import artifact, health, inbox, journal, question, role, run, runs, shadow, step
from milepost.console.pages.asked import Asked
from milepost.console.shown import render
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
from milepost.runtime.standing import unanswered
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
    answers = _Answers(console)
    routes = [
        Route("/", lambda request: RedirectResponse("/inbox")),
        *(route for page in PAGES for route in answers.routes(page)),
        Route("/answer", answers.answered, methods=["POST"]),
        Route("/artifact", lambda request: artifact.send(console, Asked(request.query_params))),
        Route("/events", stream(console.changes)),
        Route("/signin", lambda request: answers.sign_in(request, "", HTTPStatus.OK), methods=["GET"]),
        Route("/signout", lambda request: RedirectResponse("/signin", 303), methods=["POST"]),
        static_route(),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers=dict.fromkeys((MilepostError, HTTPException, Exception), answers.trouble),
        lifespan=console.changes.lifespan,
    )
    return Gate(app, console, lambda request, why: answers.sign_in(request, why, HTTPStatus.UNAUTHORIZED))


class _Answers:
    """Answers the requests to one console: with a page, its JSON twin, the page where one signs in, an error's page."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def routes(self, page: Page) -> list[Route]:
        """Return the routes of a page and of its twin."""

        def gathered(request: Request) -> dict[str, Any]:
            return page.gather(self._console, Asked(request.query_params))

        def shown(request: Request) -> Response:
            return self._page(request, page.template, gathered(request))

        return [
            Route(page.path, shown),
            Route(f"{page.path}.json", lambda request: _json(gathered(request))),
        ]

    def answered(self, request: Request) -> Response:
        """Record what a form says. Crash: each answer as if not given, or given."""
        state = request.scope["state"]
        found = question.answer(self._console, state["visit"].identity, state["form"])
        if not found.refused:
            return RedirectResponse(found.to, 303)
        return self._page(request, "answered.html", found, HTTPStatus.CONFLICT)

    def sign_in(self, request: Request, why: str, status: int) -> Response:
        """Return the page where one signs in; a program that asked for JSON gets JSON."""
        path = request.scope["path"]
        if path.endswith((".json", "/events", "/artifact")):
            about = {
                "code": "signed-out",
                "message": why or "Nobody is signed in.",
                "hint": "Send a named token as Bearer.",
            }
            return _json({"error": about}, status)
        is_going_on = path != "/signin" and "token=" not in _query(request)
        people = self._console.people
        values = {
            "why": why,
            "to": path + _query(request) if is_going_on else "/",
            "takes_tokens": bool(people.named),
            "takes_links": people.owner is not None,
        }
        return self._page(request, "signin.html", values, status)

    def trouble(self, request: Request, error: Exception) -> Response:
        """Tell an error. One of our own is raised again by Starlette: its traceback stands where we were started."""
        about, status = _about(error)
        if request.scope["path"].endswith(".json"):
            return _json({"error": about}, status)
        return self._page(request, "trouble.html", about, status)

    def _page(self, request: Request, template: str, page: object, status: int = HTTPStatus.OK) -> Response:
        visit = request.scope.get("state", {}).get("visit")
        path = request.scope["path"]
        shown = render(
            template,
            page=page,
            visit=visit,
            path=path,
            twin=f"{path}.json{_query(request)}",
            waiting=self._waiting() if visit else 0,
            store=self._console.door.location,
            proxied=bool(self._console.people.proxy),
        )
        return HTMLResponse(shown, status)

    def _waiting(self) -> int:
        """Return how many questions wait; 0 when the store cannot say, which the page itself tells."""
        try:
            return len(unanswered(self._console.store))
        except MilepostError:
            return 0


def _json(value: Any, status: int = HTTPStatus.OK) -> Response:
    return Response(json.dumps(value, indent=2, default=str) + "\n", status, media_type="application/json")


def _query(request: Request) -> str:
    """Return the query of a request with its `?`, "" without one."""
    query = request.scope["query_string"].decode("ascii", "replace")
    return f"?{query}" if query else ""


# ── errors ──


def _about(error: Exception) -> tuple[Mapping[str, Any], int]:
    """Return what is told of an error, and its status."""
    if isinstance(error, MilepostError):
        return error_object(error), _status(error)
    if isinstance(error, HTTPException):
        hint = "Go on from the inbox or the list of runs."
        return {"code": "no-such-page", "message": f"{error.detail}.", "hint": hint}, error.status_code
    about = {
        "code": "bug",
        "message": f"This page could not be made: {type(error).__name__}. What is recorded stands.",
        "hint": "This is a bug in Milepost; please report it with what the console wrote where it was started.",
    }
    return about, HTTPStatus.INTERNAL_SERVER_ERROR


def _status(error: MilepostError) -> int:
    if isinstance(error, NOT_THERE):
        return HTTPStatus.NOT_FOUND
    if isinstance(error, UnavailableError):
        return HTTPStatus.SERVICE_UNAVAILABLE
    if isinstance(error, MisuseError):
        return HTTPStatus.BAD_REQUEST
    return HTTPStatus.CONFLICT if isinstance(error, RefusedError) else HTTPStatus.INTERNAL_SERVER_ERROR

"""The gate every request passes: host, origin, who is there, form key, size; and the headers every answer carries.

Nothing behind it asks these again, and nothing reaches a page around it. Knows no run. Wraps the app in `app`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from milepost.console.peer import OwnAccount
from milepost.console.people import VISIT_S, Visit, form_key_holds
from milepost.console.wiring import Console

BODY_SIZE_MAX = 1024 * 1024
"""Bytes a form may have."""
BODY_S = 15.0
"""Seconds a form may take to arrive."""
FIELDS_MAX = 2000
"""Fields a form may have: two for each of a .map's approvals on one page, and some."""
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # no-referrer would make a browser send `Origin: null` with our own forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""On every answer; a page may only tighten them."""


class Gate:
    """An ASGI app around another one; `sign_in` answers whoever is not let through, and is told why."""

    def __init__(self, app: ASGIApp, console: Console, sign_in: Callable[[Request, str], Response]) -> None:
        self._app, self._console, self._sign_in = app, console, sign_in
        self._people, self._hosts = console.people, console.hosts
        self._is_secure = console.url.startswith("https://")
        # Named by the port: a browser sends the cookies of a host to all its ports, and would take one for the other.
        self._cookie = f"{'__Host-' if self._is_secure else ''}milepost_console_{console.port}"
        self._account = OwnAccount()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            guarded = _with_headers(send)
            response = await self._judge(Request(scope, receive))
            await (response or self._app)(scope, receive, guarded)

    async def _judge(self, request: Request) -> Response | None:
        """Return the answer to a request that goes no further; None lets it through with its visitor and form."""
        host = request.headers.get("host", "")
        if not self._hosts.know(host):
            return _plain(403, f"This console does not answer to the host {host[:200]!r}; see --allow-host.")
        if self._console.owners_only and not self._is_the_owner(request):
            return _plain(403, "This console answers only to the account that started it.")
        if request.method == "POST":
            return await self._judge_form(request, host)
        if request.method not in ("GET", "HEAD"):
            return _plain(405, "Only GET, HEAD and POST are answered.")
        return self._judge_reading(request)

    def _is_the_owner(self, request: Request) -> bool:
        return self._account.is_at(request.scope.get("client"), request.scope.get("server"), time.monotonic())

    # ── reading ──

    def _judge_reading(self, request: Request) -> Response | None:
        request.scope["state"] = {"visit": None, "form": {}}
        if "token" in request.query_params and request.method == "GET":
            return self._enter_by_link(request)
        if _is_open(request.scope["path"]):
            return None
        visit = self._visit(request)
        if visit is not None:
            request.scope["state"]["visit"] = visit
            return None
        if (
            request.headers.get("sec-fetch-site") == "cross-site"
            and request.headers.get("sec-fetch-mode") == "navigate"
        ):
            return _again(request)
        return self._sign_in(request, "")

    def _enter_by_link(self, request: Request) -> Response:
        cookie = self._people.enter_by_link(request.query_params["token"][:200], time.monotonic())
        if cookie is None:
            return self._sign_in(request, "This link was used already, or belongs to an earlier start of the console.")
        self._console.on_entered()
        rest = urlencode([(k, v) for k, v in request.query_params.multi_items() if k != "token"])
        return self._entered(request.url.path + (f"?{rest}" if rest else ""), cookie)

    def _entered(self, path: str, cookie: str) -> Response:
        response = RedirectResponse(_own_path(path), 303)
        response.set_cookie(
            self._cookie,
            cookie,
            max_age=int(VISIT_S),
            httponly=True,
            samesite="strict",
            secure=self._is_secure,
            path="/",
        )
        return response

    def _visit(self, request: Request) -> Visit | None:
        address = request.client.host if request.client else ""
        return self._people.visit(request.headers, request.cookies.get(self._cookie, ""), address, time.monotonic())

    # ── forms ──

    async def _judge_form(self, request: Request, host: str) -> Response | None:
        if not self._hosts.is_own_origin(request.headers.get("origin", ""), host):
            return _plain(403, "This form was not sent by a page of this console (its Origin is another).")
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
            return _plain(415, "A form is sent as application/x-www-form-urlencoded.")
        form = await _form(request)
        if isinstance(form, Response):
            return form
        if request.scope["path"] == "/signin":
            return self._enter_by_name(request, form)
        visit = self._visit(request)
        if visit is None:
            return self._sign_in(request, "You are not signed in any more; nothing was sent.")
        if not form_key_holds(visit, form.get("form_key", [""])[0]):
            return _plain(403, "This form is not one you were given here; go back, reload the page, send it again.")
        request.scope["state"] = {"visit": visit, "form": form}
        if request.scope["path"] == "/signout":
            return self._leave(request)
        return None

    def _enter_by_name(self, request: Request, form: dict[str, list[str]]) -> Response:
        cookie = self._people.enter_by_name(form.get("token", [""])[0].strip(), time.monotonic())
        if cookie is None:
            return self._sign_in(request, "No such token.")
        return self._entered(form.get("to", ["/"])[0], cookie)

    def _leave(self, request: Request) -> Response:
        self._people.leave(request.cookies.get(self._cookie, ""))
        response = RedirectResponse("/signin", 303)
        response.delete_cookie(self._cookie, path="/", httponly=True, samesite="strict", secure=self._is_secure)
        return response


async def _form(request: Request) -> dict[str, list[str]] | Response:
    """Read a bounded form: values by name, in order."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > BODY_SIZE_MAX:
                    return _plain(413, f"A form may have at most {BODY_SIZE_MAX} bytes; nothing was done.")
    except TimeoutError:
        return _plain(408, f"The form did not arrive within {BODY_S:.0f} seconds; nothing was done.")
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX)
    except ValueError:
        return _plain(400, "The form cannot be read; nothing was done.")
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def _with_headers(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return guarded


def _again(request: Request) -> Response:
    """Let a browser that comes from a link elsewhere ask once more from here: only then it sends its Strict cookie."""
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    response = Response(b"", 200, media_type="text/html")
    response.headers["refresh"] = f"0; url={_own_path(path)}"
    return response


def _own_path(path: str) -> str:
    """Return a path on this host and no other: `//elsewhere` and `https:…` are not."""
    parts = urlsplit(path)
    inside = path.startswith("/") and not path.startswith(("//", "/\\")) and not parts.scheme and not parts.netloc
    return path if inside and path.isprintable() else "/"


def _is_open(path: str) -> bool:
    """Say whether a path is for everybody: the style sheet and scripts, and the page where one signs in."""
    return path == "/signin" or path.startswith("/static/")


def _plain(status: int, text: str) -> Response:
    return PlainTextResponse(text + "\n", status)

"""The style sheet and scripts of the console: files of this package, named here one by one. No path is ever joined."""

from __future__ import annotations

from importlib.resources import files

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

STATIC = files("milepost.console") / "static"
MEDIA_TYPES = {
    "style.css": "text/css",
    "htmx.min.js": "text/javascript",
    "answering.js": "text/javascript",
    "live.js": "text/javascript",
    "theme.js": "text/javascript",
    "milepost.svg": "image/svg+xml",
}


def static_route() -> Route:
    """Return the route of everything in MEDIA_TYPES."""
    return Route("/static/{name}", _send)


def _send(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in MEDIA_TYPES:
        raise HTTPException(404)
    data = (STATIC / name).read_bytes()
    return Response(data, media_type=MEDIA_TYPES[name], headers={"cache-control": "no-cache"})

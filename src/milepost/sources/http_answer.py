"""A URL as a source, as it is asked: by its ETag, else its Last-Modified, else the digest of its body.

Only http and https, redirects included; credentials never follow a redirect to another server. HEAD and GET only, so
nothing is changed at the other side. Gone (404, 410) is absent; every other failure is cannot-tell.
"""

from __future__ import annotations

import hashlib
import http.client
import string
import time
from collections.abc import Callable
from typing import Protocol
from urllib.parse import quote, urljoin, urlsplit
from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request

from milepost.errors import BadOption, MilepostError
from milepost.records.secret import Secret
from milepost.sources.http import TIMEOUT_S, problem_of
from milepost.sources.naming import cannot_tell
from milepost.sources.observation import Descriptor, Observation, absent, content_fingerprint

BODY_SIZE_MAX = 64 * 1024 * 1024  # bytes, where the server gives neither ETag nor Last-Modified
PIECE_SIZE = 64 * 1024  # bytes read at once
REDIRECTS_MAX = 5

_MOVED = frozenset({301, 302, 303, 307, 308})
_GONE = frozenset({404, 410})


class _Answer(Protocol):
    """What is used of `http.client.HTTPResponse`."""

    def read1(self, n: int = -1, /) -> bytes: ...


def observe_http(descriptor: Descriptor, seal_key: bytes | None) -> Observation:
    """Ask the server of a descriptor: HEAD first, GET where that does not tell.

    Raises:
        SourceUnavailable: no connection, no answer in time, a status that tells nothing, a body past BODY_SIZE_MAX.
    """
    try:
        return _by_head(descriptor, seal_key) or _by_get(descriptor, seal_key)
    except MilepostError:
        raise
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise cannot_tell(descriptor, getattr(error, "reason", None) or error) from error


def _by_head(descriptor: Descriptor, seal_key: bytes | None) -> Observation | None:
    """Look without the body; None where the server gives no validator, or does not know HEAD."""
    with _ask("HEAD", descriptor) as answer:
        return _by_validator(answer, descriptor, seal_key) if _is_success(answer) else None


def _by_get(descriptor: Descriptor, seal_key: bytes | None) -> Observation:
    with _ask("GET", descriptor) as answer:
        if answer.status in _GONE:
            return absent(descriptor)
        if not _is_success(answer):
            raise cannot_tell(descriptor, f"the server answered {answer.status} {answer.reason}")
        known = _by_validator(answer, descriptor, seal_key)
        return known or _by_body(answer, descriptor, seal_key)


def _is_success(answer: http.client.HTTPResponse) -> bool:
    return 200 <= answer.status < 300


def _by_validator(
    answer: http.client.HTTPResponse, descriptor: Descriptor, seal_key: bytes | None
) -> Observation | None:
    """Use the server's own word for the version (RFC 9110 §8.8); a time only counts with the length beside it."""
    length = answer.headers.get("Content-Length", "")
    version = answer.headers.get("ETag", "")
    if not version and answer.headers.get("Last-Modified"):
        version = f"{answer.headers['Last-Modified']} {length}"
    if not version:
        return None
    digest = hashlib.sha256(version.encode("utf-8", "surrogateescape")).digest()
    size = int(length) if length.isdecimal() else 0
    return Observation(descriptor, content_fingerprint("http version", digest, seal_key), size)


def _by_body(answer: http.client.HTTPResponse, descriptor: Descriptor, seal_key: bytes | None) -> Observation:
    digest, size = body_digest(answer, descriptor.get("timeout_s", TIMEOUT_S))
    return Observation(descriptor, content_fingerprint("http body", digest, seal_key), size)


def body_digest(answer: _Answer, timeout_s: float, now: Callable[[], float] = time.monotonic) -> tuple[bytes, int]:
    """Digest a body in pieces: SHA-256 and size in bytes.

    Raises:
        OSError: larger than BODY_SIZE_MAX, or not through after `timeout_s` however steadily it drips.
    """
    digest, size, end = hashlib.sha256(), 0, now() + timeout_s
    while piece := answer.read1(PIECE_SIZE):
        digest.update(piece)
        size += len(piece)
        if size > BODY_SIZE_MAX:
            raise OSError(f"the body is larger than {BODY_SIZE_MAX:,} bytes, and has neither ETag nor Last-Modified")
        if now() > end:
            raise TimeoutError(f"the body was not complete after {timeout_s} seconds")
    return digest.digest(), size


def _ask(method: str, descriptor: Descriptor) -> http.client.HTTPResponse:
    """Send one request and follow redirects; the caller closes the answer."""
    url, headers = descriptor["url"], _sent(descriptor)
    opener = _opener()
    for _ in range(REDIRECTS_MAX + 1):
        own = headers if _server(url) == _server(descriptor["url"]) else {}
        request = Request(url, headers=own, method=method)
        answer: http.client.HTTPResponse = opener.open(request, timeout=descriptor.get("timeout_s", TIMEOUT_S))
        target = answer.headers.get("Location") if answer.status in _MOVED else None
        if target is None:
            return answer
        answer.close()
        url = urljoin(url, quote(target, safe=string.punctuation))
        if problem := problem_of(url):
            raise cannot_tell(descriptor, f"it redirects elsewhere: {problem}")
    raise cannot_tell(descriptor, f"more than {REDIRECTS_MAX} redirects")


def _opener() -> OpenerDirector:
    """Build an opener that knows http and https and nothing else: no file:, no ftp:, no redirects of its own."""
    opener = OpenerDirector()
    for handler in (ProxyHandler(), HTTPHandler(), HTTPSHandler()):
        opener.add_handler(handler)
    return opener


def _server(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _sent(descriptor: Descriptor) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in descriptor.get("headers", {}).items():
        try:
            headers[name] = value if isinstance(value, str) else Secret(value["secret"]).read()
        except BadOption as error:
            raise cannot_tell(descriptor, str(error)) from error
    return headers

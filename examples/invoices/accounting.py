"""The client of the accounting queue: post one exception under a key, find it again by that key.

Called by the task's effect and its lookup. Errors of the HTTP library become those of `faults.py` here; nothing
is retried here, that is the task's policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import httpx2

from invoices.faults import CannotLookUp, NotReached, RateLimited, TurnedDown, Unanswered, retry_after_of

ANSWER_S_MAX = 30.0


@dataclass(frozen=True)
class Receipt:
    """The queue's own reference of an accepted exception, such as `AQ-000001`."""

    ref: str


def post_exception(url: str, key: str, exception: Mapping[str, object], *, timeout_s: float = ANSWER_S_MAX) -> Receipt:
    """Send one exception under its idempotency key.

    Raises:
        NotReached, RateLimited, TurnedDown: nothing was accepted.
        Unanswered: it may have been accepted.
    """
    where = f"POST {url}/exceptions"
    answer = _request("POST", url, where, timeout_s, headers={"Idempotency-Key": key}, json=dict(exception))
    if answer.status_code == httpx2.codes.TOO_MANY_REQUESTS:
        raise RateLimited(where=where, retry_after=retry_after_of(answer.headers.get("Retry-After")))
    if answer.is_client_error:
        raise TurnedDown(where=where, status=answer.status_code, said=answer.text)
    return _receipt(answer, where)


def find_exception(url: str, key: str, *, timeout_s: float = ANSWER_S_MAX) -> Receipt | None:
    """Look an exception up by its key; None when the queue does not show one.

    Raises:
        CannotLookUp: this queue has no lookup, or it gave no usable answer.
    """
    where = f"GET {url}/exceptions?key={key}"
    try:
        answer = _request("GET", url, where, timeout_s, params={"key": key})
        if answer.status_code == httpx2.codes.NOT_FOUND:
            return None
        return _receipt(answer, where)
    except (NotReached, Unanswered) as error:
        raise CannotLookUp(where=where, found=error.found) from error


def _request(
    method: str,
    url: str,
    where: str,
    timeout_s: float,
    *,
    headers: Mapping[str, str] | None = None,
    json: Mapping[str, object] | None = None,
    params: Mapping[str, str] | None = None,
) -> httpx2.Response:
    try:
        # The queue is on loopback: a proxy named in the environment is not meant for it, and loading certificates
        # would be most of the request's time.
        with httpx2.Client(timeout=timeout_s, trust_env=False, verify=url.startswith("https:")) as client:
            return client.request(method, f"{url}/exceptions", headers=headers, json=json, params=params)
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
        raise NotReached(where=where, found=str(error) or type(error).__name__) from error
    except httpx2.HTTPError as error:
        raise Unanswered(where=where, found=str(error) or type(error).__name__) from error


def _receipt(answer: httpx2.Response, where: str) -> Receipt:
    if not answer.is_success:
        raise Unanswered(where=where, found=f"status {answer.status_code}: {answer.text[:300]}")
    try:
        ref = answer.json()["ref"]
    except (ValueError, KeyError, TypeError) as error:
        raise Unanswered(where=where, found=f"no reference in {answer.text[:300]!r}") from error
    return Receipt(ref=str(ref))

"""A URL as a source, as it is declared and recorded: http and https only, credentials by the name of their secret.

Asks nothing (see `http_answer`, which is loaded only where a URL is observed: the standard library's HTTP client
would take an eighth of the time `import milepost` may take).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from milepost.errors import BadOption
from milepost.records.secret import Secret
from milepost.sources.observation import Descriptor

TIMEOUT_S = 10.0  # seconds
TIMEOUT_MAX_S = 600.0  # seconds

_CREDENTIALS = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key"})


@dataclass(frozen=True, slots=True)
class Http:
    """A page or file at a URL. `headers` are recorded: give credentials as `Secret("NAME")`, recorded by name only.

    `timeout_s` bounds the connection, each wait for data, and the reading of the body as a whole.
    """

    url: str
    headers: Mapping[str, str | Secret] = field(default_factory=dict)
    timeout_s: float = TIMEOUT_S

    def __post_init__(self) -> None:
        where = "Http(url, …)"
        if problem := problem_of(self.url):
            raise BadOption(where=where, reason=problem)
        if not 0 < self.timeout_s <= TIMEOUT_MAX_S:
            raise BadOption(
                where=where, reason=f"timeout_s: expected up to {TIMEOUT_MAX_S} seconds, found {self.timeout_s}"
            )
        for name, value in self.headers.items():
            _check_header(name, value)

    def descriptor(self) -> Descriptor:
        """Return the source as data, without what is as usual."""
        described: Descriptor = {"kind": "http", "url": self.url}
        if self.headers:
            described["headers"] = {name: _recorded(value) for name, value in sorted(self.headers.items())}
        if self.timeout_s != TIMEOUT_S:
            described["timeout_s"] = self.timeout_s
        return described


def _recorded(value: str | Secret) -> str | dict[str, str]:
    return {"secret": value.name} if isinstance(value, Secret) else value


def problem_of(url: str) -> str | None:
    """Return why a URL is refused, without repeating what may be secret in it; None when it is not."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError as error:
        return f"expected an http or https URL: {error}"
    if not known:
        return f"expected an http or https URL with a host, found the scheme {parts.scheme!r}"
    if "@" in parts.netloc:
        return 'the URL holds credentials; give them as headers={"Authorization": Secret("NAME")}'
    if not (url.isascii() and url.isprintable() and " " not in url):
        return "expected ASCII without spaces; percent-encode the rest"
    return None


def _check_header(name: str, value: object) -> None:
    where = f"Http(headers={{{name!r}: …}})"
    if isinstance(value, Secret):
        return
    if not isinstance(value, str) or not (name + value).isprintable():
        raise BadOption(where=where, reason="expected one line of text or Secret(…)")
    if name.lower() in _CREDENTIALS:
        raise BadOption(where=where, reason='its value would be recorded; give Secret("NAME") instead')

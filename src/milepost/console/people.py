"""Who may come in, and who they are: the account that started the console, named tokens, or a proxy's word.

Keeps visits in memory only: they end with the process. Judges no answer; `runtime.answering` does. Called by `gate`.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from milepost.records.identity import Identity

VISITS_MAX = 256
"""Visits kept at once; the oldest goes first."""
VISIT_S = 12 * 3600.0
"""Seconds after which a browser has to sign in again."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One request's proven visitor; `form_key` must come back with every form they send."""

    identity: Identity
    form_key: str


@dataclass(frozen=True, slots=True)
class Proxy:
    """A reverse proxy that signs people in: the header with their name, and what proves that the proxy set it."""

    name_header: str
    groups_header: str = ""
    secret: str = ""  # in X-Milepost-Proxy-Secret
    addresses: frozenset[str] = frozenset()

    def identity_of(self, headers: Mapping[str, str], address: str) -> Identity | None:
        """Return who the proxy says is there; None when it is not provably the proxy that says it."""
        if self.secret and not _equal(headers.get("x-milepost-proxy-secret", ""), self.secret):
            return None
        if self.addresses and address.removeprefix("::ffff:") not in self.addresses:
            return None
        name = headers.get(self.name_header.lower(), "").strip()
        if not name or not name.isprintable() or len(name) > 200:
            return None
        named = headers.get(self.groups_header.lower(), "") if self.groups_header else ""
        groups = tuple(group.strip() for group in named.split(",") if group.strip())
        return Identity(name, groups, "console")


@dataclass(slots=True)
class People:
    """Everybody who may come in. Thread-safe.

    Args:
        owner: who comes in by a link that works once; None when links are not given out.
        named: SHA-256 of a token (hex) to whom it belongs.
        proxy: takes over when given: nobody else is let in then.
    """

    owner: Identity | None = None
    named: Mapping[str, Identity] = field(default_factory=dict)
    proxy: Proxy | None = None
    _links: set[str] = field(default_factory=set)
    _visits: dict[str, tuple[float, Visit]] = field(default_factory=dict)
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def new_link_token(self) -> str:
        """Return a token that lets the owner in once."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._links.add(token_digest(token))
        return token

    def enter_by_link(self, token: str, now_s: float) -> str | None:
        """Use up a link's token; return the cookie of a new visit, None for a wrong or used one."""
        with self._lock:
            given = token_digest(token)
            if self.owner is None or given not in self._links:
                return None
            self._links.discard(given)
        return self._begin(self.owner, now_s)

    def enter_by_name(self, token: str, now_s: float) -> str | None:
        """Return the cookie of a new visit for the holder of a named token, None for an unknown one."""
        identity = self.named.get(token_digest(token))
        return None if identity is None else self._begin(identity, now_s)

    def leave(self, cookie: str) -> None:
        """End a visit."""
        with self._lock:
            self._visits.pop(token_digest(cookie), None)

    def visit(self, headers: Mapping[str, str], cookie: str, address: str, now_s: float) -> Visit | None:
        """Return who sent a request, None when nobody we know did."""
        if self.proxy is not None:
            identity = self.proxy.identity_of(headers, address)
            return None if identity is None else Visit(identity, self._form_key(identity))
        scheme, _, token = headers.get("authorization", "").partition(" ")
        bearer = self.named.get(token_digest(token.strip())) if scheme.lower() == "bearer" else None
        if bearer is not None:
            return Visit(bearer, secrets.token_urlsafe(16))  # reads; no form knows this key
        with self._lock:
            since, visit = self._visits.get(token_digest(cookie), (0.0, None)) if cookie else (0.0, None)
        return visit if visit is not None and now_s - since < VISIT_S else None

    def _begin(self, identity: Identity, now_s: float) -> str:
        cookie = secrets.token_urlsafe(32)
        with self._lock:
            while len(self._visits) >= VISITS_MAX:
                self._visits.pop(next(iter(self._visits)))
            self._visits[token_digest(cookie)] = (now_s, Visit(identity, secrets.token_urlsafe(32)))
        return cookie

    def _form_key(self, identity: Identity) -> str:
        return hmac.new(self._secret, identity.name.encode("utf-8"), "sha256").hexdigest()


def form_key_holds(visit: Visit, given: str) -> bool:
    """Say whether a form carries the key its sender was given."""
    return _equal(given, visit.form_key)


def token_digest(token: str) -> str:
    """Return what is kept of a token, here and in a tokens file."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode("utf-8"))

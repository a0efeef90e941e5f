"""The digest by which a change of inputs or of a source is noticed.

With a seal key it is keyed, so that a short secret in the inputs cannot be guessed from the journal. Its domain
is its own: no fingerprint is ever a seal, an artifact's digest or an idempotency key. Never reads the key itself.
"""

from __future__ import annotations

import hashlib
import hmac

_DOMAIN = b"milepost fingerprint 1\x00"
_SMALL_BYTES = 64 * 1024


def fingerprint(data: bytes, seal_key: bytes | None) -> str:
    """Give the fingerprint of `data`: HMAC-SHA256 with a key, else SHA-256; 64 hexadecimal characters."""
    if seal_key is None and len(data) <= _SMALL_BYTES:
        return hashlib.sha256(_DOMAIN + data).hexdigest()
    mac = hashlib.sha256(_DOMAIN) if seal_key is None else hmac.new(seal_key, _DOMAIN, "sha256")
    mac.update(data)  # in two pieces, so that a large value is not copied
    return mac.hexdigest()

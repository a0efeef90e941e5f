"""What a source is called: by a key between two looks, by a name for people, by a path on this machine.

Never looks at content. Paths are resolved against the working folder of the moment, as `open` would.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import PurePath
from urllib.parse import urlsplit

from milepost.errors import BadOption, SourceUnavailable
from milepost.records.canonical import canonical
from milepost.records.secret import redact
from milepost.records.shown import cut, inert, readable
from milepost.sources.observation import Descriptor

QUERY_SHOWN_MAX = 60  # characters of a query in a name
REASON_MAX = 300  # characters of a foreign error text
KEY_HEX = 32  # characters
ALL_FILES = "**/*"
"""The pattern of a folder declared without one."""


def path_fields(field: str, path: str | PurePath) -> Descriptor:
    """Return the descriptor fields of a path: readable, and its bytes beside it where UTF-8 cannot hold them."""
    text = os.fspath(path)
    shown = readable(text)
    return {field: shown} if shown == text else {field: shown, f"{field}_hex": os.fsencode(text).hex()}


def path_of(descriptor: Descriptor, field: str = "path") -> str:
    """Return the path a descriptor names, byte for byte as it was declared."""
    in_hex = descriptor.get(f"{field}_hex")
    return os.fsdecode(bytes.fromhex(in_hex)) if in_hex else str(descriptor[field])


def check_path(where: str, path: str | PurePath) -> None:
    """Refuse what can never be a path. Raises: BadOption."""
    if not isinstance(path, (str, PurePath)):
        raise BadOption(where=where, reason=f"expected a path (str or Path), found {type(path).__name__}")
    if not str(path) or "\0" in str(path):
        raise BadOption(where=where, reason="expected a path, found an empty text or one with a NUL character")


def key_of(descriptor: Descriptor) -> str:
    """Return the short, stable id of a descriptor: 32 hexadecimal characters, the same for whatever is at one path.

    A path counts as absolute, normalised and with symlinks followed, so that two spellings have one key. A folder
    watched through a pattern has a key of its own: it is another source than the whole folder.
    """
    kind = descriptor["kind"]
    if kind in ("file", "folder"):
        pattern = descriptor.get("pattern", ALL_FILES)
        name = b"path" if pattern == ALL_FILES else b"path " + canonical(pattern)
        return _key(name, os.fsencode(os.path.realpath(path_of(descriptor))))
    if kind == "sql":
        asked = canonical([descriptor["query"], descriptor["parameters"]])
        return _key(b"sql", asked, os.fsencode(os.path.realpath(path_of(descriptor, "database"))))
    return _key(str(kind).encode(), canonical(descriptor))


def _key(*parts: bytes) -> str:
    digest = hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts))
    return digest.hexdigest()[:KEY_HEX]


def name_of(descriptor: Descriptor) -> str:
    """Return the name people see: one line, nothing a terminal acts on, no credentials and no query of a URL."""
    kind = descriptor["kind"]
    if kind == "sql":
        name = f"{descriptor['database']}: {cut(' '.join(descriptor['query'].split()), QUERY_SHOWN_MAX)}"
    elif kind == "http":
        name = f"GET {_public(descriptor['url'])}"
    elif kind == "call":
        name = f"{descriptor['name']}()"
    elif kind == "folder":
        name = _folder_name(descriptor)
    else:
        name = str(descriptor.get("path", kind))
    return inert(name)


def _folder_name(descriptor: Descriptor) -> str:
    folder = str(descriptor["path"]).rstrip("/") + "/"
    pattern = descriptor.get("pattern", ALL_FILES)
    return folder if pattern == ALL_FILES else folder + pattern


def _public(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}{'?…' if parts.query else ''}"


def cannot_tell(descriptor: Descriptor, reason: str | BaseException) -> SourceUnavailable:
    """Build the error for a source that may or may not be there; a foreign error's text is cut and redacted."""
    text = _explained(reason, descriptor) if isinstance(reason, BaseException) else reason
    return SourceUnavailable(source=name_of(descriptor), reason=cut(inert(redact(text)), REASON_MAX))


def _explained(error: BaseException, descriptor: Descriptor) -> str:
    if isinstance(error, OSError) and error.strerror:
        inside = error.filename is not None and error.filename != descriptor.get("path")
        return f"{error.filename}: {error.strerror}" if inside else error.strerror
    return f"{type(error).__name__}: {_text_of(error)}"


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the text is the user's code; one that raises must not hide the failure
        return "(its text cannot be read)"

"""An artifact for downloading: always an attachment of one fixed media type, never something a browser would show."""

from __future__ import annotations

import re

from starlette.responses import Response

from milepost.console.pages.asked import Asked
from milepost.console.wiring import Console
from milepost.errors import ArtifactUnknown, MisuseError
from milepost.records.model import Pointer
from milepost.runtime.keeping import Artifacts
from milepost.runtime.opening import Opened
from milepost.runtime.trust import files_listed, pointers

DIGEST = re.compile(r"[0-9a-f]{64}")
SIZE_MAX = 256 * 1024 * 1024
"""Bytes of an artifact that are sent."""


def send(console: Console, asked: Asked) -> Response:
    """Return one artifact that a trusted record of the run points at, its digest checked."""
    opened = console.read(asked.needed("run"))
    wanted = asked.needed("digest")
    found = _pointer(console, opened, wanted) if DIGEST.fullmatch(wanted) else None
    if found is None:
        raise ArtifactUnknown(run_id=opened.row.run_id, digest=wanted[:80])
    what, pointer = found
    if pointer.size > SIZE_MAX:
        reason = f"it has {pointer.size:,} bytes; the console sends up to {SIZE_MAX:,}"
        raise MisuseError(reason=reason, hint=f"Take it from the store's folder {console.store.folder}, by its digest.")
    data = Artifacts(console.store, opened.row.run_id, snapshot=opened.snapshot).load(pointer, what)
    return Response(data, media_type="application/octet-stream", headers=_headers(what, wanted))


def _pointer(console: Console, opened: Opened, wanted: str) -> tuple[str, Pointer] | None:
    artifacts = Artifacts(console.store, opened.row.run_id, snapshot=opened.snapshot)
    for what, pointer in pointers(record for _, record in opened.records):
        if pointer.digest == wanted:
            return what, pointer
        if not what.startswith("files of "):
            continue
        for name, inner in files_listed(what, artifacts.load(pointer, what)):
            if inner.digest == wanted:
                return name, inner
    return None


def _headers(what: str, digest: str) -> dict[str, str]:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", what).strip("-.")[-80:] or "artifact"
    return {
        "content-disposition": f'attachment; filename="{name}-{digest[:12]}.bin"',
        "content-security-policy": "sandbox; default-src 'none'",
    }

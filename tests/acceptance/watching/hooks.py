"""A webhook that runs, as a test sees it: its url for apprise, and what it took."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Hook:
    """A webhook that runs: its url for apprise, and what it took."""

    def __init__(self, port: int, received: Path) -> None:
        self.url, self._received = f"json://127.0.0.1:{port}/s3cret-path", received

    @property
    def taken(self) -> list[dict[str, Any]]:
        if not self._received.exists():
            return []
        return [json.loads(line) for line in self._received.read_text(encoding="utf-8").splitlines()]

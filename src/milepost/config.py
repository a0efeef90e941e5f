"""`milepost.toml`: what one project sets for notifications, `milepost watch` and the console.

Read strictly: a key nobody knows and a value of another type are errors, not surprises. Every key is optional, and so
is the file. Called by the command line and the console; holds no rule of theirs.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from milepost.errors import BadConfig
from milepost.owners import foreign_owner
from milepost.regular import kind_at, read_regular

FILE = "milepost.toml"
A_TIME = 'a time such as "30s", "15min", "4h", "2d" or "6w" ("m" alone may be minutes or months)'
"""What `time_span` reads, in words."""
_TIME_SPAN = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s*(s|min|h|d|w)", re.ASCII)
_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_LASTING_MAX = timedelta(days=365)
_COUNT_MAX = 65535
_ADDRESS = re.compile(r"https?://(\[[0-9a-fA-F:.]+\]|[\w.-]+)(:\d{1,5})?(/[^\s?#]*)?")
Address: TypeAlias = str
"""A text that people will open as a link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyConfig:
    """`[notify]`: where questions go. A url `env:NAME` is read from that environment variable, so that it stays there.

    `command` is an argument list, run without a shell. Times are written `"90s"`, `"30min"`, `"4h"`, `"2d"` or `"6w"`.
    """

    urls: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    remind_after: timedelta | None = None
    escalate_after: timedelta | None = None
    escalate_to: tuple[str, ...] = ()
    timeout: timedelta = timedelta(seconds=10)
    attempts: int = 8

    @property
    def reaches_somebody(self) -> bool:
        """Say whether there is anything to send a question through."""
        return bool(self.urls or self.command)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchConfig:
    """`[watch]`: how many runs `milepost watch` starts at once, and how it waits before it starts one again.

    `restarts` bounds the restarts of one run in a row that brought no new checkpoint.
    """

    at_once: int = 2
    restarts: int = 5
    first_wait: timedelta = timedelta(seconds=5)
    longest_wait: timedelta = timedelta(minutes=15)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleConfig:
    """`[console]`: where the console listens; `url` is how people reach it, put as a link into notifications.

    Who may come in: `tokens_file` names people by the SHA-256 of their tokens; `identity_header` is set by a reverse
    proxy that signs them in, proven by the secret in the environment variable `proxy_secret_env` or by its address.
    """

    url: Address = ""
    host: str = "127.0.0.1"
    port: int = 8765
    allowed_hosts: tuple[str, ...] = ()
    tokens_file: str = ""
    identity_header: str = ""
    groups_header: str = ""
    proxy_secret_env: str = ""
    trusted_proxies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything `milepost.toml` sets; `file` is None when there is none."""

    file: Path | None = None
    notify: NotifyConfig = field(default_factory=NotifyConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)
    console: ConsoleConfig = field(default_factory=ConsoleConfig)


_TABLES: Mapping[str, type[Any]] = {"notify": NotifyConfig, "watch": WatchConfig, "console": ConsoleConfig}


def find_config(start: Path, store: Path | None = None) -> Path | None:
    """Return the file found upwards from a folder, else the one beside the store or its `.milepost` folder.

    Whatever bears the name counts: a link that leads nowhere is not passed over in silence.
    """
    start = start.absolute()
    folders = [start, *start.parents]
    if store is not None:
        folders += list(store.absolute().parents)[:2]
    return next((folder / FILE for folder in folders if os.path.lexists(folder / FILE)), None)


def load_config(start: Path, store: Path | None = None) -> Config:
    """Read the file that holds for a working folder and a store's file. Raises: BadConfig."""
    file = find_config(start, store)
    if file is None:
        return Config()
    _check_owner(file, store)
    return read_config(file)


def _check_owner(file: Path, store: Path | None) -> None:
    """Refuse a file of somebody else: it is looked for upwards, in a shared folder too, and names a command to run.

    Whoever owns the store is trusted: a store of somebody else is opened only when it was named on purpose.
    """
    trusted = [store.parent.stat().st_uid] if store is not None and store.parent.exists() else []
    try:
        owner, mode = foreign_owner(file, trusted=trusted), file.stat().st_mode
    except OSError as error:
        raise BadConfig(file=file, key="the file", expected="a readable file", found=error.strerror) from error
    if owner is not None:
        expected, is_there = "a file of yours, of root or of whoever owns the store; one of your own nearer by", owner
    elif mode & stat.S_IWOTH:
        expected, is_there = "a file that not everybody may write", f"mode {stat.S_IMODE(mode):o}"
    else:
        return
    raise BadConfig(file=file, key="the file", expected=expected, found=is_there)


def read_config(file: Path) -> Config:
    """Read one file. Raises: BadConfig naming the file, the key, what was expected and what was found."""
    data = _parsed(file)
    _check_known(file, "", data, list(_TABLES))
    tables = {name: _table(file, name, cls, data[name]) for name, cls in _TABLES.items() if name in data}
    return Config(file=file, **tables)


def _parsed(file: Path) -> dict[str, Any]:
    try:
        kind = kind_at(str(file)) or "file"
        if kind != "file":
            raise BadConfig(file=file, key="the file", expected="a regular file", found=f"a {kind}")
        return tomllib.loads(read_regular(file).decode("utf-8"))
    except OSError as error:
        raise BadConfig(file=file, key="the file", expected="a readable file", found=error.strerror) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(file=file, key="the file", expected="TOML", found=str(error)) from error


T = TypeVar("T")


def _table(file: Path, name: str, cls: type[T], found: Any) -> T:
    if not isinstance(found, dict):
        raise BadConfig(file=file, key=name, expected=f"a table, [{name}]", found=_shown(found))
    declared = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]
    _check_known(file, f"{name}.", found, list(declared))
    values = {key: _value(file, f"{name}.{key}", declared[key], value) for key, value in found.items()}
    return cls(**values)


def _check_known(file: Path, prefix: str, found: Mapping[str, Any], known: list[str]) -> None:
    unknown = next((key for key in found if key not in known), None)
    if unknown is None:
        return
    near = difflib.get_close_matches(unknown, known, 1, 0.5)
    meant = f"; {prefix}{near[0]} may be meant" if near else ""
    raise BadConfig(
        file=file, key=prefix + unknown, expected=f"one of {', '.join(known)}", found=f"a key nobody knows{meant}"
    )


def _value(file: Path, key: str, declared: Field[Any], found: Any) -> Any:
    expected, read = _READERS[str(declared.type)]
    value = read(found)
    if value is None:
        is_time = read is _lasting and isinstance(found, str)
        raise BadConfig(file=file, key=key, expected=expected, found=repr(found[:40]) if is_time else _shown(found))
    return value


def _shown(found: Any) -> str:
    """Say what was found by its type and, of numbers only, by value: a text may be a secret."""
    if isinstance(found, bool | int | float):
        return str(found).lower()
    names = {str: "a text", list: "a list of something else", dict: "a table"}
    return next((name for kind, name in names.items() if isinstance(found, kind)), type(found).__name__)


# ── reading one value: None when it is of another type ──────────────────────────────────────────────


def _text(found: Any) -> str | None:
    return found if isinstance(found, str) and found and found.isprintable() else None


def _address(found: Any) -> str | None:
    return found if isinstance(found, str) and found.isprintable() and _ADDRESS.fullmatch(found) else None


def _texts(found: Any) -> tuple[str, ...] | None:
    is_list = isinstance(found, list) and all(_text(item) for item in found)
    return tuple(found) if is_list else None


def _count(found: Any) -> int | None:
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 < found <= _COUNT_MAX else None


def time_span(text: str) -> timedelta | None:
    """Read a time as people write it, here and on the command line; None when it is none, see `A_TIME`."""
    match = _TIME_SPAN.fullmatch(text.strip())
    return None if match is None else timedelta(seconds=float(match[1]) * _SECONDS[match[2]])


def _lasting(found: Any) -> timedelta | None:
    span = time_span(found) if isinstance(found, str) else None
    return span if span is not None and timedelta(0) < span <= _LASTING_MAX else None


_A_TIME = f"{A_TIME}, at most 365 days"
_READERS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "str": ("a text of printable characters, not empty", _text),
    "Address": ("an address such as https://milepost.example, without a name, a password or a query", _address),
    "tuple[str, ...]": ('a list of texts, such as ["…", "…"]', _texts),
    "int": (f"a whole number from 1 to {_COUNT_MAX}", _count),
    "timedelta": (_A_TIME, _lasting),
    "timedelta | None": (_A_TIME, _lasting),
}
"""For the type of a key: what is expected, in words, and what reads it."""

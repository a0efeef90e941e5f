"""The mail provider: an SMTP server process that keeps what it accepted in a Maildir, its *sent* folder.

It knows no keys: a message sent twice is kept twice. Every accepted message is on disk before the 250.
Run: `python -m invoices.world.smtp --sent FOLDER [--port 0] [--silent-on 1,3]`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Collection
from pathlib import Path

from aiosmtpd.smtp import SMTP, Envelope, Session

from invoices.world.lifeline import announce, stop_with_starter

MESSAGE_BYTES_MAX = 10 * 1024 * 1024


class SentFolder:
    """A Maildir that numbers its messages in the order of acceptance."""

    def __init__(self, folder: Path) -> None:
        self._tmp, self._new = folder / "tmp", folder / "new"
        for part in (self._tmp, self._new, folder / "cur"):
            part.mkdir(parents=True, exist_ok=True)
        taken = [path.name.partition(".")[0] for path in (*self._new.iterdir(), *(folder / "cur").iterdir())]
        self._count = max((int(number) for number in taken if number.isdecimal()), default=0)

    def keep(self, content: bytes) -> Path:
        """Store one message.

        Crash: the whole message is in `new/`, or only in `tmp/`, where nobody reads.
        """
        self._count += 1
        name = f"{self._count:06d}.sent"
        with open(self._tmp / name, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(self._tmp / name, self._new / name)
        _sync_folder(self._new)
        return self._new / name


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Provider:
    """The answers of the server; messages are counted from 1 since the process started."""

    def __init__(self, sent: SentFolder, silent_on: Collection[int]) -> None:
        self._sent = sent
        self._silent_on = silent_on
        self._count = 0

    async def handle_RCPT(
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Take recipients under `.example` only, as nobody real is meant."""
        if not address.endswith(".example"):
            return "550 5.1.2 No such domain here"
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return "250 2.1.5 Recipient taken"

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:
        """Keep the message, then answer; or keep it and never answer.

        Crash: the message is kept whole or not at all; see `SentFolder.keep`.
        """
        assert isinstance(envelope.content, bytes)
        self._count += 1
        self._sent.keep(envelope.content)
        if self._count in self._silent_on:
            await asyncio.Event().wait()
        return "250 2.0.0 Message accepted for delivery"


async def serve(sent: Path, port: int, silent_on: Collection[int]) -> None:
    """Answer on a loopback port until the starter goes away."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    provider = Provider(SentFolder(sent), silent_on)

    def session() -> SMTP:
        return SMTP(provider, hostname="localhost", data_size_limit=MESSAGE_BYTES_MAX, loop=loop)

    def stop() -> None:
        loop.call_soon_threadsafe(stopped.set)

    server = await loop.create_server(session, "127.0.0.1", port)
    stop_with_starter(stop)
    announce(server.sockets[0].getsockname()[1])
    await stopped.wait()
    server.close()


def numbers(text: str) -> frozenset[int]:
    """Read `1,3` as the numbers 1 and 3; empty text is no number."""
    return frozenset(int(part) for part in text.split(",") if part)


def main() -> None:
    """Serve until the starter goes away."""
    parser = argparse.ArgumentParser(prog="invoices.world.smtp", description="The mail provider.")
    parser.add_argument("--sent", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--silent-on", type=numbers, default=frozenset(), metavar="N,N")
    options = parser.parse_args()
    asyncio.run(serve(options.sent, options.port, options.silent_on))


if __name__ == "__main__":
    main()

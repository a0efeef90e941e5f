"""A disk that forgets what nobody flushed when the power goes: one file of a FUSE file system, in its own process.

As a program it serves the disk: `forgetful_disk.py IMAGE MOUNTED_ON`; a loop device on that file makes it a real disk.
Its only order, a line `cut SHARE SEED PATH`, writes what is left of it to a path: everything up to the last flush, and
of the writes since then a share drawn from the seed, each whole or not at all. `Disk` talks to it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import random
import select
import stat
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

MS_NOSUID, MS_NODEV = 2, 4
IN, OUT = struct.Struct("=IIQQIIII"), struct.Struct("=IiQ")
ATTR = struct.Struct("=6Q10I")
INIT_OUT = struct.Struct("=IIIIHHIIHHI28x")
TRANSFER = struct.Struct("=QQIIQII")
"""How FUSE asks to read or write: handle, offset, size, then what does not matter here."""
BUFFER_BYTES = 1 << 20
MAJOR, MINOR, WRITE_MAX = 7, 31, 128 * 1024


class Server:
    """Answers the kernel. `now` is what readers see, `safe` what a cut leaves for certain."""

    def __init__(self, image: bytes, mounted_on: str) -> None:
        self.now, self.safe = bytearray(image), bytearray(image)
        self.since: list[tuple[int, bytes]] = []  # writes since the last flush
        self.device = os.open("/dev/fuse", os.O_RDWR)
        given = f"fd={self.device},rootmode={stat.S_IFREG | 0o600:o},user_id=0,group_id=0"
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"forgetful", mounted_on.encode(), b"fuse", MS_NOSUID | MS_NODEV, given.encode()):
            raise OSError(ctypes.get_errno(), "mount")
        self.answers: dict[int, Callable[[bytes], bytes]] = {
            3: self.attributes,
            4: self.attributes,  # to set them: nothing here can be set
            14: lambda body: bytes(16),  # open
            15: self.read,
            16: self.write,
            18: lambda body: b"",  # release
            20: self.flush,
            25: lambda body: b"",  # close: no flush of the disk
            26: self.begin,
        }

    def begin(self, body: bytes) -> bytes:
        return INIT_OUT.pack(MAJOR, MINOR, WRITE_MAX, 0, 12, 9, WRITE_MAX, 1, WRITE_MAX // 4096, 0, 0)

    def attributes(self, body: bytes) -> bytes:
        size = len(self.now)
        attributes = ATTR.pack(1, size, size // 512, 0, 0, 0, 0, 0, 0, stat.S_IFREG | 0o600, 1, 0, 0, 0, 4096, 0)
        return bytes(16) + attributes

    def read(self, body: bytes) -> bytes:
        _, offset, size, *_ = TRANSFER.unpack_from(body)
        return bytes(self.now[offset : offset + size])

    def write(self, body: bytes) -> bytes:
        _, offset, size, *_ = TRANSFER.unpack_from(body)
        data = body[TRANSFER.size : TRANSFER.size + size]
        self.now[offset : offset + size] = data
        self.since.append((offset, data))
        return struct.pack("=II", size, 0)

    def flush(self, body: bytes) -> bytes:
        for offset, data in self.since:
            self.safe[offset : offset + len(data)] = data
        self.since.clear()
        return b""

    def cut(self, share: float, seed: str, path: str) -> None:
        """Write what a power cut leaves now."""
        left, chance = bytearray(self.safe), random.Random(seed)
        for offset, data in self.since:
            if chance.random() < share:
                left[offset : offset + len(data)] = data
        Path(path).write_bytes(left)

    def serve(self) -> None:
        """Answer until nobody gives orders any more, or the disk was taken out."""
        while True:
            ready, _, _ = select.select([self.device, sys.stdin], [], [])
            if sys.stdin in ready and not self._obey(sys.stdin.readline().split()):
                return
            if self.device in ready and not self._answer():
                return

    def _obey(self, words: list[str]) -> bool:
        if words:
            self.cut(float(words[1]), words[2], words[3])
            print("cut", flush=True)
        return bool(words)

    def _answer(self) -> bool:
        try:
            asked = os.read(self.device, BUFFER_BYTES)
        except OSError as error:
            return error.errno != errno.ENODEV
        _, opcode, unique, *_ = IN.unpack_from(asked)
        answer = self.answers.get(opcode)
        found, error = (answer(asked[IN.size :]), 0) if answer else (b"", -errno.ENOSYS)
        if opcode not in (2, 36, 42):  # forget, interrupt, forget many: nobody waits for an answer
            os.write(self.device, OUT.pack(OUT.size + len(found), error, unique) + found)
        return True


class Disk:
    """A disk in a process of its own: the kernel that waits for it must not wait for us."""

    def __init__(self, image: Path, mounted_on: Path) -> None:
        self.path = mounted_on
        mounted_on.touch()
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(image), str(mounted_on)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            self._process.communicate()
            raise OSError(errno.ENODEV, "FUSE gave no disk")

    def cut(self, share: float, seed: str, path: Path) -> None:
        """Write to a path what a power cut would leave at this moment."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"cut {share} {seed} {path}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "cut\n"

    def close(self) -> None:
        subprocess.run(["umount", "-l", str(self.path)], check=True)
        self._process.communicate()


def main() -> None:
    server = Server(Path(sys.argv[1]).read_bytes(), sys.argv[2])
    print("ready", flush=True)
    server.serve()


if __name__ == "__main__":
    main()

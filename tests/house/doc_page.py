"""A page of documentation as a program: its code blocks, and a reader who does exactly what the page says.

A python block whose first line is `# NAME.py` is a file to write; another one is run as it is. In a console block a
line `$ command` is typed, the lines below are expected: `…` stands for anything, a line of it for any lines. A question
id is a name the reader learns: `q-` and ten digits on the page is whatever id was printed there. A command that ends in
` &` runs on; as much of what it prints is compared as the page shows, and `kill %1` ends it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from source_tree import ROOT

COMMAND_S_MAX = 60
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w.-]+\.\w+)\n")
_QUESTION = re.compile(r"q-[0-9a-f]{16}")


@dataclass(frozen=True)
class Block:
    """One fenced block: its language and its text."""

    language: str
    text: str

    @property
    def file(self) -> str | None:
        """Return the name of the file it is, None when it is not one."""
        found = _FILE.match(self.text)
        return found[1] if found else None


def pages() -> list[Path]:
    """Return every page a stranger reads."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    return [Block(language, text) for language, text in _BLOCK.findall(page.read_text(encoding="utf-8"))]


@dataclass
class Reader:
    """Somebody who follows a page in an empty folder, with this Milepost and nothing else set."""

    folder: Path
    programs: Path = Path(sys.executable).parent  # where the `milepost` that is typed is found first
    status: int = 0
    learned: dict[str, str] = field(default_factory=dict)  # question id on the page -> the real one
    _running: ExitStack = field(default_factory=ExitStack)

    def follow(self, page: Path) -> None:
        """Write its files, type its commands. Raises: AssertionError naming the command that went otherwise."""
        with self._running:
            for block in blocks(page):
                if block.file is not None:
                    (self.folder / block.file).write_text(block.text, encoding="utf-8")
                elif block.language == "console":
                    self._type(block.text)

    def _type(self, text: str) -> None:
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            typed = self._with_learned(command)
            printed = self._started(typed, expected) if command.endswith(" &") else self._printed(typed)
            self._compare(command, expected, printed)

    def _started(self, command: str, expected: str) -> str:
        """Start a command that runs on until it is killed; return as many lines as the page shows of it."""
        started = subprocess.Popen(
            ["bash", "-c", f"exec {command.removesuffix(' &')}"],
            cwd=self.folder,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._running.callback(_end, started)
        assert started.stdout is not None
        return "".join(started.stdout.readline() for _ in expected.strip().splitlines())

    def _printed(self, command: str) -> str:
        if command == "echo $?":
            return str(self.status)
        if command == "kill %1":
            self._running.close()
            return ""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_S_MAX,
            check=False,
        )
        self.status = done.returncode if done.returncode >= 0 else 128 - done.returncode
        return done.stdout + ("Killed" if self.status == 137 and "Killed" not in done.stdout else "")

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("LANG", "PYTHONPATH") if name in os.environ}
        return {
            **kept,
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "COLUMNS": "120",
            "NO_COLOR": "1",
            "PYTHONUTF8": "1",
            "PYTHONUNBUFFERED": "1",
        }

    def _with_learned(self, command: str) -> str:
        return _QUESTION.sub(lambda found: self.learned.get(found[0], found[0]), command)

    def _compare(self, command: str, expected: str, printed: str) -> None:
        wanted = [" ".join(line.split()) for line in expected.splitlines() if line.strip()]
        found = "".join(" ".join(line.split()) + "\n" for line in printed.splitlines() if line.strip())
        match = re.fullmatch("".join(map(_pattern, wanted)), found)
        assert match, f"$ {command}\n── the page says\n{expected}\n── it printed\n{printed}"
        self.learned.update(zip(_QUESTION.findall("\n".join(wanted)), match.groups(), strict=True))


def _end(started: subprocess.Popen[str]) -> None:
    started.terminate()
    started.communicate(timeout=COMMAND_S_MAX)


def _pattern(line: str) -> str:
    if line == "…":
        return r"(?:.*\n)*"
    pattern = re.escape(line).replace("…", ".*")
    return _QUESTION.sub("(q-[0-9a-f]{16})", pattern.replace(r"q\-", "q-")) + r"\n"

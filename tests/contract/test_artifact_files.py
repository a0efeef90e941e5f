"""Artifacts as files: whole or not there, checked when read, nothing reached outside their folder."""

from __future__ import annotations

import hashlib
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from milepost.artifacts.files import PIECE_BYTES, ArtifactDamaged, ArtifactFiles, ArtifactMissing
from milepost.errors import StoreUnavailable

DATA = b"line\n" * 1000
DIGEST = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def files(tmp_path: Path) -> ArtifactFiles:
    return ArtifactFiles(tmp_path / "deep" / "artifacts")


def everything(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_bytes_and_pieces_are_one_artifact(files: ArtifactFiles) -> None:
    assert files.write(DATA) == (DIGEST, len(DATA))
    assert files.write(iter([DATA[:7], b"", DATA[7:]])) == (DIGEST, len(DATA))
    assert files.read(DIGEST) == DATA
    assert everything(files.folder) == [files.path(DIGEST)]
    assert files.sizes() == {DIGEST: len(DATA)}


def test_only_its_owner_may_read(files: ArtifactFiles) -> None:
    files.write(DATA)
    assert stat.S_IMODE(files.path(DIGEST).stat().st_mode) == 0o600
    assert stat.S_IMODE(files.folder.stat().st_mode) == 0o700


def test_a_damaged_file_is_refused_and_mended_by_writing_again(files: ArtifactFiles, tmp_path: Path) -> None:
    files.write(DATA)
    flipped = bytearray(DATA)
    flipped[10] ^= 1
    for wrong in (bytes(flipped), DATA[:-1], b""):
        files.path(DIGEST).write_bytes(wrong)
        with pytest.raises(ArtifactDamaged, match=DIGEST):
            files.read(DIGEST)
        with pytest.raises(ArtifactDamaged, match=DIGEST):
            files.copy_out(DIGEST, tmp_path / "out")
        assert not (tmp_path / "out").exists()
        files.write(DATA)
        assert files.read(DIGEST) == DATA


def test_an_absent_file_is_another_answer_than_a_damaged_one(files: ArtifactFiles, tmp_path: Path) -> None:
    for ask in (lambda: files.read(DIGEST), lambda: files.copy_out(DIGEST, tmp_path / "out")):
        with pytest.raises(ArtifactMissing, match=DIGEST):
            ask()
    files.remove(DIGEST)
    assert files.size(DIGEST) is None


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "A" * 64, "", "%2e%2e", DIGEST + "\n", "x" * 9999])
def test_what_is_no_digest_is_never_a_path(files: ArtifactFiles, name: str) -> None:
    with pytest.raises(ArtifactDamaged, match="not a SHA-256"):
        files.read(name)


def test_a_link_or_a_pipe_in_place_of_an_artifact_is_not_followed(files: ArtifactFiles, tmp_path: Path) -> None:
    files.write(DATA)
    other = tmp_path / "other"
    other.write_bytes(DATA)
    files.path(DIGEST).unlink()
    files.path(DIGEST).symlink_to(other)
    with pytest.raises(ArtifactDamaged, match="link"):
        files.read(DIGEST)
    files.path(DIGEST).unlink()
    os.mkfifo(files.path(DIGEST))
    with pytest.raises(ArtifactDamaged, match="not a regular file"):
        files.read(DIGEST)


def test_a_file_is_copied_in_and_out_again(files: ArtifactFiles, tmp_path: Path) -> None:
    source, target = tmp_path / "in.bin", tmp_path / "new" / "out.bin"
    source.write_bytes(os.urandom(PIECE_BYTES + 17))
    digest, size = files.copy_in(source)
    files.copy_out(digest, target)
    assert size == PIECE_BYTES + 17
    assert target.read_bytes() == source.read_bytes()


def test_nothing_at_the_target_is_ever_overwritten(files: ArtifactFiles, tmp_path: Path) -> None:
    files.write(DATA)
    target = tmp_path / "mine.txt"
    target.write_text("mine")
    with pytest.raises(FileExistsError):
        files.copy_out(DIGEST, target)
    assert target.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "mine.txt"]


def test_pipes_folders_and_devices_are_not_copied_in(files: ArtifactFiles, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for source in (tmp_path / "pipe", tmp_path, Path("/dev/null")):
        with pytest.raises((ValueError, IsADirectoryError)):
            files.copy_in(source)
    assert not files.folder.exists()


def test_a_source_of_pieces_that_fails_leaves_nothing(files: ArtifactFiles) -> None:
    def pieces() -> Iterator[bytes]:
        yield DATA
        raise RuntimeError("the generator broke")

    with pytest.raises(RuntimeError):
        files.write(pieces())
    assert everything(files.folder) == []


def test_a_full_disk_leaves_nothing(files: ArtifactFiles) -> None:
    """A file size limit stands in for the full disk: write() ends short, then fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(StoreUnavailable, match="write artifact failed"):
            files.write(DATA)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert everything(files.folder) == []


def test_killed_while_writing_leaves_an_unfinished_file_and_no_artifact(files: ArtifactFiles) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path; from milepost.artifacts.files import ArtifactFiles\n"
        "def pieces():\n    yield b'half'\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "ArtifactFiles(Path(sys.argv[1])).write(pieces())"
    )
    done = subprocess.run([sys.executable, "-c", script, str(files.folder)], timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    assert files.sizes() == {}
    assert everything(files.folder) == files.unfinished() != []

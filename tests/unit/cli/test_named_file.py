"""A file that a user names: replaced whole, never something else than a file, and never one of a store."""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from milepost.cli.named_file import NAMED_FILE, NAMED_FOLDER, written
from milepost.errors import UnavailableError
from milepost.stores.sqlite.store import SqliteStore

SIZE_MAX = 4096


def write(path: Path, data: bytes = b"new") -> None:
    with written(path) as out:
        out.write(data)


def interrupted(path: Path) -> None:
    with written(path) as out:
        out.write(b"new")
        raise KeyboardInterrupt


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def small_files() -> Iterator[None]:
    """Let this process write no file beyond SIZE_MAX bytes: a write fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SIZE_MAX, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    """A record that only its owner could read stays so; whatever lies beside it under any name is let be."""
    file, beside = tmp_path / "a.html", tmp_path / "a.html.new"
    file.write_bytes(b"old")
    file.chmod(0o600)
    beside.write_bytes(b"precious")
    write(file)
    assert (file.read_bytes(), mode_of(file), beside.read_bytes()) == (b"new", 0o600, b"precious")
    assert sorted(tmp_path.iterdir()) == [file, beside]


def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(tmp_path / ("n" * 250))  # as long a name as there can be
    finally:
        os.umask(before)
    assert mode_of(tmp_path / ("n" * 250)) == 0o640


def test_a_link_is_followed(tmp_path: Path) -> None:
    """`latest.html` goes on pointing where it pointed, also when nothing was there yet."""
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "a", tmp_path / "latest"
    link.symlink_to("there/a")
    for data in (b"first", b"second"):
        write(link, data)
        assert (link.is_symlink(), target.is_symlink(), target.read_bytes()) == (True, False, data)


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    """As `>(gzip)` gives one; the same holds for a device such as /dev/null."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(pipe)
        assert (os.read(reader, 100), pipe.is_fifo()) == (b"new", True)
    finally:
        os.close(reader)


def test_a_device_is_written_into(tmp_path: Path) -> None:
    """Root may replace /dev/null by a file, and then the machine has none."""
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes a device")
    try:
        write(device)
    except UnavailableError:
        assert os.statvfs(tmp_path).f_flag & os.ST_NODEV
    assert stat.S_ISCHR(device.lstat().st_mode)
    write(Path(os.devnull))
    assert stat.S_ISCHR(os.lstat(os.devnull).st_mode)


@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
def test_an_open_descriptor_is_written_into(tmp_path: Path, folder: str) -> None:
    """What is there stays: as `>> log` and /dev/stdout mean it, and the file behind it is not exchanged."""
    if not os.path.isdir(folder):
        pytest.skip("this system has no such folder")
    with (tmp_path / "log").open("wb") as log:
        log.write(b"old ")
        log.flush()
        (tmp_path / "out").symlink_to(f"{folder}/{log.fileno()}")
        write(tmp_path / "out")
        assert os.fstat(log.fileno()).st_ino == (tmp_path / "log").stat().st_ino
    assert (tmp_path / "log").read_bytes() == b"old new"


def test_a_full_disk_keeps_the_old_file_and_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"old")
    with small_files(), pytest.raises(UnavailableError, match="cannot be written"):
        write(file, bytes(2 * SIZE_MAX))
    assert (file.read_bytes(), list(tmp_path.iterdir())) == (b"old", [file])


def test_whatever_ends_the_writing_keeps_the_old_file(tmp_path: Path) -> None:
    """A run that is refused half way, or Ctrl-C."""
    file = tmp_path / "a"
    file.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        interrupted(file)
    assert (file.read_bytes(), list(tmp_path.iterdir())) == (b"old", [file])


def refusal(path: str, kind: click.Path = NAMED_FILE) -> str:
    try:
        kind.convert(path, None, None)
    except click.BadParameter as error:
        return error.message
    return ""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a store in it, as a command finds one; its witness has a place."""
    SqliteStore(tmp_path / ".milepost" / "store.sqlite", create=True).close()
    SqliteStore(tmp_path / "other.sqlite", create=True).close()
    (tmp_path / "state" / "milepost" / "witness").mkdir(parents=True)
    (tmp_path / "link").symlink_to(".milepost")
    (tmp_path / "linked.html").symlink_to(".milepost/store.sqlite")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MILEPOST_STORE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


OF_A_STORE = [
    *(f".milepost/store.sqlite{end}" for end in ("", "-wal", "-shm", "-journal", ".watch", ".watch.lock", ".notify")),
    ".milepost/store.sqlite.notify-wal",
    ".milepost/store.sqlite.locks/a.html",
    ".milepost/store.sqlite.artifacts/00/a",
    "link/store.sqlite-wal",
    "linked.html",
    "other.sqlite",
    "state/milepost/witness/a",
]


@pytest.mark.parametrize("path", OF_A_STORE)
def test_what_belongs_to_a_store_is_refused(folder: Path, path: str) -> None:
    """Its own export would be the end of it; a link or another store's name changes nothing."""
    assert f"{path!r} belongs to a Milepost store" in refusal(path)
    assert f"{str(folder / path)!r} belongs to a Milepost store" in refusal(str(folder / path))


def test_a_folder_is_refused_and_other_files_are_not(folder: Path) -> None:
    assert "is a directory" in refusal(".milepost")
    for path in ("a.html", ".milepost/a.html", ".milepost/store.sqlite.html", "-", "/dev/stdout", os.devnull):
        assert refusal(path) == ""


def test_a_store_with_a_short_name_takes_no_other_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILEPOST_STORE", str(folder / "s"))
    assert [refusal(path) == "" for path in ("s", "s-wal", "s.locks/a", "s.html", "summary")] == [
        *(False, False, False),
        *(True, True),
    ]


LONG = ["n" * 300, f"{'n/' * 2500}a", f"{'n' * 300}/a"]


@pytest.mark.parametrize("kind", [NAMED_FILE, NAMED_FOLDER], ids=["file", "folder"])
@pytest.mark.parametrize("path", LONG)
def test_a_name_that_is_too_long_is_refused_before_anything_is_done(folder: Path, kind: click.Path, path: str) -> None:
    assert refusal(path, kind) == f"{path!r} cannot be written: File name too long"


@pytest.mark.parametrize("kind", [NAMED_FILE, NAMED_FOLDER], ids=["file", "folder"])
def test_an_empty_name_is_not_the_folder_one_is_in(folder: Path, kind: click.Path) -> None:
    """`--output "$FILE"` of a shell that does not know FILE."""
    assert refusal("", kind) == f"no {kind.name} is named: the name is empty."


def test_a_name_that_is_too_long_is_told_by_whoever_writes(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="cannot be written: File name too long"):
        write(tmp_path / LONG[0])


def test_a_folder_to_fill_is_new_or_empty(folder: Path) -> None:
    (folder / "empty").mkdir()
    (folder / "file").touch()
    assert [refusal(path, NAMED_FOLDER) for path in ("empty", "new", "new/deep")] == ["", "", ""]
    assert refusal(".milepost", NAMED_FOLDER) == "'.milepost' is not empty; name a new folder."
    assert "is a file" in refusal("file", NAMED_FOLDER)
    assert "is not empty" in refusal(".", NAMED_FOLDER)

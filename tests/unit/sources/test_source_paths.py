"""Files and folders are told apart by content: absent, changed, unreadable are three different answers."""

from __future__ import annotations

import json
import os
import socket
from contextlib import closing
from pathlib import Path, PurePath

import pytest

from milepost import Secret
from milepost.errors import BadOption, SourceUnavailable
from milepost.sources import File, Folder, Observation, Source, changes, content, folder, key_of, observe, of_path
from milepost.sources.observation import ITEMS_MAX
from milepost.stores.sqlite.store import SqliteStore

KEY = b"a seal key"


def look(source: Source, seal_key: bytes | None = KEY) -> Observation:
    return observe(source.descriptor(), seal_key=seal_key)


def test_same_size_and_time_with_other_content_is_a_change(tmp_path: Path) -> None:
    """Size and time are what other tools compare, and an edit within one second escapes them."""
    path = tmp_path / "orders.csv"
    path.write_text("a,1\nb,2\n")
    before, status = look(File(path)), path.stat()
    path.write_text("a,1\nb,3\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    after = look(File(path))
    assert before.fingerprint != after.fingerprint
    assert changes(before, after) == ["line 2 changed"]


def test_text_of_lines_is_kept_of_small_files_in_unsealed_runs_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a change says helps a person; a key says that the store is not to know, and a secret never is."""
    monkeypatch.setenv("F3_PASSWORD", "open sesame")
    Secret("F3_PASSWORD").read()
    path = tmp_path / "notes.txt"
    path.write_text(f"a\npassword: open sesame\n{'x' * 300}\n")
    assert look(File(path), None).texts == ("a", "password: [secret F3_PASSWORD]", "x" * 199 + "…")
    assert look(File(path)).texts == ()
    path.write_text("x" * 80 + "\n" + "y" * (64 * 1024))
    assert look(File(path), None).texts == ()


def test_touched_file_is_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("a,1\n")
    before = look(File(path))
    os.utime(path, (1, 1))
    assert look(File(path)) == before


def test_absent_file_is_an_answer_not_an_error(tmp_path: Path) -> None:
    gone = look(File(tmp_path / "none.csv"))
    assert (gone.fingerprint, gone.size, gone.items) == (None, 0, ())
    (tmp_path / "file").write_bytes(b"")
    assert look(File(tmp_path / "file" / "below")).fingerprint is None


def test_link_to_itself_cannot_be_told(tmp_path: Path) -> None:
    """It is neither absent nor there; taking it for absent would let a step run on nothing."""
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(SourceUnavailable, match="symbolic links"):
        look(File(tmp_path / "loop"))


def test_fifo_socket_and_device_are_refused_without_waiting(tmp_path: Path) -> None:
    """Opening a FIFO without a writer would hang the resume for ever."""
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(SourceUnavailable, match="is a FIFO, expected a regular file"):
        look(File(tmp_path / "fifo"))
    with pytest.raises(SourceUnavailable, match="is a device"):
        look(File("/dev/zero"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        with pytest.raises(SourceUnavailable, match="is a socket"):
            look(File(tmp_path / "socket"))


def test_symlink_is_followed(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    (tmp_path / "link").symlink_to("one")
    assert look(File(tmp_path / "link")).fingerprint == look(File(tmp_path / "one")).fingerprint


def test_fingerprint_is_keyed(tmp_path: Path) -> None:
    """Without the key nobody can read or guess a content from the journal of a sealed run."""
    path = tmp_path / "pin"
    path.write_text("1234")
    seen = {look(File(path), key).fingerprint for key in (None, KEY, b"another")}
    assert len(seen) == 3
    assert "1234" not in json.dumps(look(File(path), KEY).to_json())


def test_large_file_is_read_in_pieces_and_has_no_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"line\n" * 100_000)
    whole = look(File(path))
    monkeypatch.setattr(content, "PIECE_SIZE", 1000)
    assert look(File(path)) == whole
    assert (whole.size, whole.items) == (500_000, ())


def test_file_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "growing"
    path.write_bytes(b"x" * 100)
    monkeypatch.setattr(content, "FILE_SIZE_MAX", 99)
    with pytest.raises(SourceUnavailable, match="more than 99 bytes"):
        look(File(path))


def test_binary_file_has_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "b"
    for data in (b"\xff\xfe\n", b"a\0b\n"):
        path.write_bytes(data)
        assert look(File(path)).items == ()


def test_file_of_too_many_lines_has_a_fingerprint_only(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"\n" * ITEMS_MAX)
    assert len(look(File(path)).items) == ITEMS_MAX
    path.write_bytes(b"\n" * (ITEMS_MAX + 1))
    assert look(File(path)).items == ()


def test_names_no_text_can_hold_survive_as_data(tmp_path: Path) -> None:
    """Linux allows any byte in a name; the descriptor is JSON and must lead back to the same file."""
    name = os.fsdecode(b"caf\xe9\nmenu\x1b[2J.txt")
    (tmp_path / name).write_text("x")
    one, all_of_them = File(tmp_path / name), Folder(tmp_path)
    stored = json.loads(json.dumps(one.descriptor(), ensure_ascii=False).encode("utf-8"))
    assert observe(stored, seal_key=KEY).size == 1
    assert key_of(stored) == key_of(one.descriptor())
    json.dumps(look(all_of_them).to_json(), ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize("path", ["", "a\0b", b"bytes", None])
def test_what_is_no_path_is_refused_at_declaration(path: object) -> None:
    for declare in (File, Folder):
        with pytest.raises(BadOption, match="expected a path"):
            declare(path)  # type: ignore[arg-type]


def test_path_argument_is_what_it_is_now(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert isinstance(of_path(tmp_path), Folder)
    assert isinstance(of_path(tmp_path / "file"), File)
    assert isinstance(of_path(PurePath(tmp_path / "none")), File)


def test_file_that_became_a_folder_is_a_change(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text("1\n")
    before = look(File(path))
    path.unlink()
    path.mkdir()
    after = look(File(path))
    assert changes(before, after) == ["is a folder now (0 files), was a file (2 bytes)"]
    assert key_of(after.descriptor) == key_of(before.descriptor)
    assert observe(after.descriptor, seal_key=KEY) == after


# ── folders ─────────────────────────────────────────────────────────────────────────────────────────


def test_folder_names_its_added_changed_and_removed_files(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv", "sub/c.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    before = look(Folder(tmp_path))
    (tmp_path / "b.csv").unlink()
    (tmp_path / "sub/c.csv").write_text("other")
    (tmp_path / ".hidden").write_text("")
    assert changes(before, look(Folder(tmp_path))) == [
        "file .hidden was added",
        "file sub/c.csv changed",
        "file b.csv was removed",
    ]


def test_content_moved_between_two_files_is_a_change(tmp_path: Path) -> None:
    """Only names and contents together say what a folder holds."""
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    before = look(Folder(tmp_path))
    (tmp_path / "a").write_text("2")
    (tmp_path / "b").write_text("1")
    assert look(Folder(tmp_path)).fingerprint != before.fingerprint


def test_empty_folders_do_not_count_but_the_folder_itself_does(tmp_path: Path) -> None:
    root = tmp_path / "root"
    assert look(Folder(root)).fingerprint is None
    root.mkdir()
    empty = look(Folder(root))
    (root / "sub").mkdir()
    assert empty.fingerprint is not None
    assert look(Folder(root)) == empty


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("**/*", [".h", "A.csv", "a.csv", "x/b.csv", "x/y/c.csv", "x/y/d.txt"]),
        ("*.csv", ["A.csv", "a.csv"]),
        ("**/*.csv", ["A.csv", "a.csv", "x/b.csv", "x/y/c.csv"]),
        ("x/**/**/*.csv", ["x/b.csv", "x/y/c.csv"]),
        ("x/*/[cd].*", ["x/y/c.csv", "x/y/d.txt"]),
        ("x/**", ["x/b.csv", "x/y/c.csv", "x/y/d.txt"]),
        ("none/*", []),
    ],
)
def test_pattern_chooses_among_relative_names_in_order_of_their_bytes(
    tmp_path: Path, pattern: str, names: list[str]
) -> None:
    for name in (".h", "a.csv", "A.csv", "x/b.csv", "x/y/c.csv", "x/y/d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(name)
    assert [label for label, _ in look(Folder(tmp_path, pattern)).items] == names


def test_nfc_and_nfd_names_are_two_files(tmp_path: Path) -> None:
    for name in ("é", "e\u0301"):
        (tmp_path / name).write_text("")
    assert [label for label, _ in look(Folder(tmp_path)).items] == ["e\u0301", "é"]


@pytest.mark.parametrize("pattern", ["", "/abs/*", "../*", "a//b", "./*", "a\n", "/".join("a" * 21)])
def test_pattern_that_leaves_the_folder_is_refused(pattern: str) -> None:
    with pytest.raises(BadOption, match="relative glob"):
        Folder("data", pattern)


def test_what_milepost_keeps_itself_is_no_part_of_a_folder(tmp_path: Path) -> None:
    """It changes with each record, and closing a file that SQLite has locked would end the process's locks."""
    (tmp_path / "orders.csv").write_text("a,1\n")
    (tmp_path / "own.sqlite.txt").write_text("no part of a store\n")
    before = look(Folder(tmp_path)).fingerprint
    for store in (tmp_path / ".milepost" / "store.sqlite", tmp_path / "own.sqlite"):
        store.parent.mkdir(exist_ok=True)
        with closing(SqliteStore(store, create=True)) as opened:
            assert f"{store.name}-shm" in os.listdir(store.parent), "open as in a run"
            store.with_name(f"{store.name}.notify").write_text("who was told of what")
            assert look(Folder(tmp_path)).fingerprint == before
            link = tmp_path.with_name("link")
            link.symlink_to(opened.path)
            for path in (opened.path, link, Path(f"{opened.path}-shm")):
                with pytest.raises(SourceUnavailable, match="belongs to a store of Milepost"):
                    look(File(path))
            link.unlink()


def test_loops_and_dangling_links_are_entries_not_errors(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "up").symlink_to("..")
    (tmp_path / "self").symlink_to("self")
    (tmp_path / "nowhere").symlink_to("none")
    before = look(Folder(tmp_path))
    assert [label for label, _ in before.items] == ["nowhere", "self", "sub/up"]
    (tmp_path / "nowhere").unlink()
    (tmp_path / "nowhere").symlink_to("elsewhere")
    assert changes(before, look(Folder(tmp_path))) == ["file nowhere changed"]


def test_fifo_in_a_folder_is_refused_only_where_it_matches(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "queue")
    assert look(Folder(tmp_path, "*.csv")).size == 0
    with pytest.raises(SourceUnavailable, match="queue: is a FIFO"):
        look(Folder(tmp_path))


def test_folder_is_bounded_in_depth_and_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "1/2/3").mkdir(parents=True)
    monkeypatch.setattr(folder, "DEPTH_MAX", 3)
    with pytest.raises(SourceUnavailable, match="more than 3 folders inside each other"):
        look(Folder(tmp_path))
    monkeypatch.setattr(folder, "ENTRIES_MAX", 1)
    with pytest.raises(SourceUnavailable, match="more than 1 files and folders"):
        look(Folder(tmp_path))


def test_file_that_vanishes_once_is_looked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the listing and the reading another process may remove a file."""
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    expected = look(Folder(tmp_path, "a"))
    read = folder.read_content

    def remove_then_read(path: str) -> content.Content:
        (tmp_path / "b").unlink(missing_ok=True)
        return read(path)

    monkeypatch.setattr(folder, "read_content", remove_then_read)
    assert look(Folder(tmp_path)).items == expected.items


def test_folder_that_never_stands_still_cannot_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("1")

    def replaced(root: str, pattern: str) -> list[folder.Entry]:
        return [folder.Entry("not-there")]

    monkeypatch.setattr(folder, "entries_of", replaced)
    with pytest.raises(SourceUnavailable, match="not-there vanished while it was being read, 2 times"):
        look(Folder(tmp_path))


def test_missing_permission_is_cannot_tell(tmp_path: Path) -> None:
    """A file one may not read is not a file that is gone. Asked in a child that gave up root, if it had it."""
    path = tmp_path / "f"
    path.write_text("1")
    path.chmod(0)
    child = os.fork()
    if child == 0:
        os._exit(_refused_without_rights(path))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _refused_without_rights(path: Path) -> int:
    if os.geteuid() == 0:
        os.setuid(65534)
    try:
        look(File(path))
    except SourceUnavailable as error:
        return 0 if "Permission denied" in str(error) else 1
    return 1


def test_source_of_a_later_version_is_named() -> None:
    with pytest.raises(SourceUnavailable, match="kind 'queue'"):
        observe({"kind": "queue"}, seal_key=None)

"""The guard of shadow runs: code that is no effect changes nothing outside, unless it is declared.

Each deed is tried for real: a file, a socket, a process. What must not happen is looked at afterwards.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import syslog
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context
from pathlib import Path
from typing import Any

import pytest

import milepost
from milepost import Key, Retry, effect, step, task
from milepost.errors import BadOption, StepFailed, UndeclaredWrite
from milepost.stores.memory import MemoryStore

pytestmark = pytest.mark.filterwarnings(  # a refusal comes where libraries expect none
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


class Place:
    """A run's folder, its temporary folder, and a place outside of both with a file that must stay as it is."""

    def __init__(self, base: Path) -> None:
        self.run, self.temporary, self.outside = base / "run", base / "temporary", base / "outside"
        for folder in (self.run, self.temporary, self.outside):
            folder.mkdir()
        self.precious = self.outside / "precious.txt"
        self.precious.write_text("as it was")
        self.precious.chmod(0o644)

    def is_untouched(self) -> bool:
        stands = self.precious.stat()
        is_as_it_was = self.precious.read_text() == "as it was" and stands.st_mode & 0o777 == 0o644
        return [*self.outside.iterdir()] == [self.precious] and is_as_it_was and stands.st_mtime > 0


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    monkeypatch.chdir(made.run)
    monkeypatch.setattr(tempfile, "tempdir", str(made.temporary))
    return made


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A service on this machine that hears of everything that reaches it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def reached(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def shadow(
    body: Callable[[], Any], *, reads: Any = (), task_reads: Any = (), shadow: bool = True, **options: Any
) -> Any:
    """Run a task whose one step does this."""

    @step(name="tried", reads=reads, **options)
    def tried() -> None:
        body()

    @task(name="guarded", reads=task_reads)
    def guarded() -> str:
        tried()
        return "done"

    return guarded.options(store=MemoryStore(), shadow=shadow).run("r")


# ── what is refused ─────────────────────────────────────────────────────────────────────────────────


def files(place: Place) -> dict[str, Callable[[], Any]]:
    out, own = place.outside, place.run / "own.txt"
    own.write_text("own")
    (place.run / "way-out").symlink_to(out)
    return {
        "open": lambda: open(out / "new.txt", "w"),
        "append": lambda: open(place.precious, "a"),
        "update": lambda: open(place.precious, "r+"),
        "os.open": lambda: os.open(out / "new.txt", os.O_CREAT | os.O_WRONLY),
        "truncate": lambda: os.truncate(place.precious, 0),
        "unlink": lambda: place.precious.unlink(),
        "rename": lambda: place.precious.rename(place.run / "taken"),
        "rename into": lambda: own.rename(out / "own.txt"),
        "mkdir": lambda: (out / "folder").mkdir(),
        "link": lambda: os.link(place.precious, place.run / "same"),
        "symlink": lambda: (out / "pointer").symlink_to(own),
        "chmod": lambda: place.precious.chmod(0o600),
        "utime": lambda: os.utime(place.precious),
        "chmod by descriptor": lambda: os.fchmod(os.open(place.precious, os.O_RDONLY), 0o600),
        "chmod of a number": lambda: os.chmod(os.open(place.precious, os.O_RDONLY), 0o600),
        "chown by descriptor": lambda: os.fchown(os.open(place.precious, os.O_RDONLY), -1, -1),
        "utime by descriptor": lambda: os.utime(os.open(place.precious, os.O_RDONLY), (0, 0)),
        "rmtree": lambda: shutil.rmtree(out),
        "copy": lambda: shutil.copy(own, out),
        "through a symlink": lambda: open(place.run / "way-out" / "new.txt", "w"),
        "dot dot": lambda: open("../outside/new.txt", "w"),
        "relative to a descriptor": lambda: os.mkdir("folder", dir_fd=os.open(out, os.O_RDONLY)),
        "bytes": lambda: open(os.fsencode(out / "new.txt"), "wb"),
        "sqlite": lambda: sqlite3.connect(out / "new.sqlite"),
        "a database's address": lambda: sqlite3.connect(f"file:{out}/new.sqlite?mode=rwc", uri=True),
        "read only in another value": lambda: sqlite3.connect(f"file:{out}/new.sqlite?x=mode=ro", uri=True),
        "read only in a fragment": lambda: sqlite3.connect(f"file:{out}/new.sqlite#?mode=ro", uri=True),
        "a mode taken back": lambda: sqlite3.connect(f"file:{out}/new.sqlite?mode=memory&mode=rwc", uri=True),
        "immutable": lambda: sqlite3.connect(f"file:{out}/new.sqlite?immutable=1", uri=True),
        "a coded path": lambda: sqlite3.connect(f"file://localhost{str(out)[:-1]}%65/new.sqlite", uri=True),
        "a name like an address": lambda: in_folder(out, sqlite3.connect, "file:new.sqlite?mode=ro"),
        "a file called like an address": lambda: in_folder(out, open, "file:new.txt?mode=ro", "w"),
        "mknod": lambda: os.mknod(out / "node"),
        "mkfifo": lambda: os.mkfifo("pipe", dir_fd=os.open(out, os.O_RDONLY)),
        "logging": lambda: logging.FileHandler(out / "new.log"),
        "a library's function": lambda: ThreadPoolExecutor(1).submit(shutil.copy, own, out).result(),
        "carried into a pool": lambda: ThreadPoolExecutor(1).submit(milepost.carry(shutil.copy), own, out).result(),
        "a loop of its own": lambda: asyncio.run(asyncio.to_thread(shutil.copy, own, out)),
        "a context of its own": lambda: Context().run(shutil.copy, own, out),
        "a thread of that context": lambda: Context().run(run_and_join, copying(own, out)),
        "another temporary folder": lambda: elsewhere(out),
    }


def in_folder(folder: Path, function: Callable[..., Any], *args: Any) -> None:
    os.chdir(folder)
    function(*args)


def copying(own: Path, out: Path) -> threading.Thread:
    return threading.Thread(target=suppressed, args=(lambda: shutil.copy(own, out),))


def elsewhere(out: Path) -> None:
    tempfile.tempdir = str(out)
    tempfile.mkstemp()


DEEDS = [
    "open", "append", "update", "os.open", "truncate", "unlink", "rename", "rename into", "mkdir", "link", "symlink",
    "chmod", "utime", "chmod by descriptor", "chmod of a number", "chown by descriptor", "utime by descriptor",
    "rmtree", "copy", "through a symlink", "dot dot", "relative to a descriptor", "bytes", "sqlite",
    "a database's address", "read only in another value", "read only in a fragment", "a mode taken back", "immutable",
    "a coded path", "a name like an address", "a file called like an address", "mknod", "mkfifo", "logging",
    "a library's function", "carried into a pool", "a loop of its own", "a context of its own",
    "a thread of that context", "another temporary folder",
]  # fmt: skip


@pytest.mark.parametrize("deed", DEEDS)
def test_a_write_outside_is_refused_and_does_not_happen(place: Place, deed: str) -> None:
    with pytest.raises(UndeclaredWrite, match=r"shadow run r, tried: writing .*outside.* is refused at ") as caught:
        shadow(files(place)[deed])
    assert place.is_untouched()
    assert caught.value.facts["path"] == "tried"


def test_all_deeds_are_tried(place: Place) -> None:
    assert list(files(place)) == DEEDS


def test_a_file_of_the_runs_own_and_one_without_a_name_is_changed_by_descriptor(place: Place) -> None:
    pipe = os.pipe()

    def changing() -> None:
        with open(place.run / "own.txt", "w") as own, tempfile.TemporaryFile() as nameless:
            for descriptor in (own.fileno(), nameless.fileno(), *pipe):
                os.fchmod(descriptor, 0o600)

    assert shadow(changing) == "done"
    for end in pipe:
        os.close(end)


PROCESSES: dict[str, Callable[[], Any]] = {
    "subprocess": lambda: subprocess.run([sys.executable, "-c", ""], check=True),
    "a shell": lambda: subprocess.run("true", shell=True, check=True),
    "os.system": lambda: os.system("true"),
    "fork": lambda: os.fork() or os._exit(0),
    "spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    "a program like a declared one": lambda: subprocess.run(["/bin/true"], check=True),
}


@pytest.mark.parametrize("deed", PROCESSES)
def test_a_process_is_refused(place: Place, deed: str) -> None:
    with pytest.raises(UndeclaredWrite, match="starting "):
        shadow(PROCESSES[deed], reads=["program:truecrypt"])


def test_a_socket_is_refused_on_this_machine_too(place: Place, listener: socket.socket) -> None:
    """A provider that runs here is a provider."""
    port = listener.getsockname()[1]
    for deed in (
        lambda: socket.create_connection(("127.0.0.1", port)),
        lambda: urllib.request.urlopen(f"http://localhost:{port}/", data=b"x"),
        lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", port)),
        lambda: asyncio.run(asyncio.open_connection("127.0.0.1", port)),
    ):
        with pytest.raises(UndeclaredWrite, match=f"a socket to .*{port}"):
            shadow(deed, reads=[f"127.0.0.1:{port + 1}", "example.org"])
    assert not reached(listener)
    gc.collect()  # sockets that no library closes when it is refused are gone here, where that is expected


def test_a_name_is_refused_before_anybody_is_asked_for_it(place: Place) -> None:
    """The question itself can carry data out, and says more to people than an address."""
    with pytest.raises(UndeclaredWrite, match=r"a socket to api\.example\.com"):
        shadow(lambda: socket.getaddrinfo("api.example.com", 443), reads=["example.com", "*.example.org"])


def test_the_systems_log_is_refused(place: Place) -> None:
    with pytest.raises(UndeclaredWrite, match="a socket to syslog"):
        shadow(lambda: syslog.syslog("told"))


def test_an_interpreter_inside_this_one_is_refused(place: Place) -> None:
    """The hook would not be there."""
    interpreters = pytest.importorskip("_xxsubinterpreters")
    with pytest.raises(UndeclaredWrite, match="an interpreter"):
        shadow(interpreters.create)


# ── whoever tries ───────────────────────────────────────────────────────────────────────────────────


def test_what_swallows_the_error_does_not_come_through(place: Place) -> None:
    """A write that is only a warning in a log would make the report a lie."""

    def careless() -> None:
        with suppress(Exception):
            place.precious.write_text("changed")

    with pytest.raises(UndeclaredWrite, match="tried"):
        shadow(careless)
    assert place.is_untouched()


def test_the_plan_swallows_it_in_vain(place: Place) -> None:
    @step
    def writes_out() -> None:
        place.precious.write_text("changed")

    @task
    def forgiving() -> str:
        with suppress(Exception):
            writes_out()
        return "done"

    with pytest.raises(UndeclaredWrite, match="writes_out"):
        forgiving.options(store=MemoryStore(), shadow=True).run("r")


def test_it_is_not_tried_again(place: Place) -> None:
    tries = []

    def counted() -> None:
        tries.append(1)
        place.precious.write_text("changed")

    with pytest.raises(UndeclaredWrite):
        shadow(counted, retry=Retry(on=Exception, attempts=3))
    assert len(tries) == 1


def test_the_plan_itself_and_verifiers_and_what_supplies_a_result_are_guarded(place: Place) -> None:
    def spoil(*_: Any) -> Any:
        return bool(place.precious.write_text("changed"))

    @step(verify=spoil)
    def verified() -> int:
        return 1

    @effect(shadow=spoil)
    def sent(key: Key) -> bool:
        return True

    for who, body in {
        "the plan": spoil,
        "verifier spoil of verified": verified,
        "the shadow of sent of sent": sent,
    }.items():
        with pytest.raises(UndeclaredWrite, match=f"shadow run r, {who}:"):
            planned(body)
    assert place.is_untouched()


def planned(body: Callable[[], Any]) -> None:
    @task(name="guarded")
    def guarded() -> None:
        body()

    guarded.options(store=MemoryStore(), shadow=True).run("r")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_of_ones_own_belongs_to_the_step_that_started_it(place: Place) -> None:
    """Also one that a thread started, and one that runs nothing but a library's function."""

    def threads() -> None:
        inner = threading.Thread(target=lambda: place.precious.write_text("changed"))
        outer = threading.Thread(target=lambda: (inner.start(), inner.join()))
        outer.start()
        outer.join()

    with pytest.raises(UndeclaredWrite, match="tried"):
        shadow(threads)
    with pytest.raises(UndeclaredWrite, match="tried"):
        shadow(lambda: run_and_join(threading.Thread(target=shutil.rmtree, args=(place.outside,))))
    assert place.is_untouched()


def run_and_join(thread: threading.Thread) -> None:
    thread.start()
    thread.join()


def test_code_on_a_loop_that_lost_its_run_belongs_to_the_plan(place: Place) -> None:
    """A task in a context of its own, and a call the loop makes, know nothing of a run; the loop is the run's."""

    def change() -> None:
        place.precious.write_text("changed")

    async def changes() -> None:
        with suppress(UndeclaredWrite):
            change()

    def called(loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon(lambda: suppressed(change), context=Context())

    @task
    async def in_a_task() -> None:
        await asyncio.create_task(changes(), context=Context())

    @task
    async def in_a_call() -> None:
        called(asyncio.get_running_loop())
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    for escaping in (in_a_task, in_a_call):
        with pytest.raises(UndeclaredWrite, match="the plan"):
            asyncio.run(escaping.options(store=MemoryStore(), shadow=True).run("r"))
    assert place.is_untouched()


def suppressed(function: Callable[[], Any]) -> None:
    with suppress(UndeclaredWrite):
        function()


def test_a_live_run_started_inside_is_refused_before_it_begins(place: Place) -> None:
    """Its effects would be sent: nothing of a shadow run is."""
    store = MemoryStore()

    @effect
    def send(key: Key) -> None:
        place.precious.write_text("sent")

    @task
    def inner() -> None:
        send()

    @step
    def starts() -> None:
        inner.options(store=store).run("inside")

    @step
    def resumes() -> None:
        inner.options(store=store).resume("failed")

    @effect(name="send")
    def fails(key: Key) -> None:
        raise ConnectionError

    with suppress(StepFailed):
        task(name="inner")(lambda: fails()).options(store=store).run("failed")
    for body in (starts, resumes, lambda: inner.options(store=store).run("inside")):
        with pytest.raises(UndeclaredWrite, match=r"the live run \w+ is refused at .*test_shadow_guard.py"):
            planned(body)
    assert store.run("inside") is None
    assert place.is_untouched()
    planned(lambda: inner.options(store=store, shadow=True).run("inside"))


def test_asyncio_tasks_are_guarded(place: Place) -> None:
    async def change() -> None:
        place.precious.write_text("changed")

    @step
    async def gathers() -> None:
        await asyncio.gather(change(), return_exceptions=True)

    @task
    async def guarded_async() -> None:
        await gathers()

    with pytest.raises(UndeclaredWrite, match="gathers"):
        asyncio.run(guarded_async.options(store=MemoryStore(), shadow=True).run("r"))
    assert place.is_untouched()


def test_a_built_in_function_given_as_a_step_is_guarded(place: Place) -> None:
    """No frame of the user's stands between Milepost and the deed."""

    @task
    def removes() -> None:
        milepost.current_run().step("remove", shutil.rmtree)(str(place.outside))

    with pytest.raises(UndeclaredWrite, match="remove: writing"):
        removes.options(store=MemoryStore(), shadow=True).run("r")
    assert place.is_untouched()


# ── what stays possible ─────────────────────────────────────────────────────────────────────────────


def test_the_runs_folder_and_temporary_files_may_be_written(place: Place) -> None:
    def own() -> None:
        Path("own.txt").write_text("x")
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "x").write_text("x")
        with sqlite3.connect(":memory:") as memory, open(os.devnull, "w") as nowhere:
            memory.execute("CREATE TABLE t (x)")
            nowhere.write("x")
        memory.close()
        sqlite3.connect(f"file:{place.run}/other.sqlite", uri=True).close()
        for read_only in ("?mode=ro", "?cache=shared&mode=ro", "?m%6fde=ro"):
            sqlite3.connect(f"file:{place.outside}/readable.sqlite{read_only}", uri=True).close()
        for in_memory in ("file::memory:", "file:x?mode=memory", "file:"):
            sqlite3.connect(in_memory, uri=True).close()
        logging.getLogger("x").warning("to stderr")
        assert place.precious.read_text() == "as it was"

    (place.outside / "readable.sqlite").touch()
    assert shadow(own) == "done"


def test_imports_may_write_their_bytecode_elsewhere(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.outside / "fresh_module.py").write_text("x = 1")
    monkeypatch.syspath_prepend(str(place.outside))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert shadow(lambda: importlib.import_module("fresh_module")) == "done"
    assert [*(place.outside / "__pycache__").iterdir()]
    monkeypatch.delitem(sys.modules, "fresh_module")


def test_what_is_declared_as_read_may_be_reached_by_the_task_or_by_this_step(
    place: Place, listener: socket.socket
) -> None:
    port = listener.getsockname()[1]

    def reaches() -> None:
        socket.create_connection(("localhost", port)).close()

    for reads in ([f"127.0.0.1:{port}"], ["127.0.0.1"], [f"localhost:{port}"]):
        assert shadow(reaches, reads=reads) == "done"
        assert reached(listener)
        assert shadow(reaches, task_reads=reads) == "done"
        assert reached(listener)
    cache = place.outside / "cache"
    assert shadow(lambda: cache.mkdir(), reads=[cache]) == "done"
    assert shadow(lambda: subprocess.run(["/bin/true"], check=True), reads=["program:true"]) == "done"


def test_what_a_step_declares_holds_for_steps_inside_it_and_for_nobody_else(place: Place) -> None:
    @step
    def inner() -> None:
        (place.outside / "cache").touch()

    @step(reads=[place.outside])
    def outer() -> None:
        inner()

    @task
    def nested() -> None:
        outer()
        inner()

    with pytest.raises(UndeclaredWrite, match="shadow run r, inner"):
        nested.options(store=MemoryStore(), shadow=True).run("r")
    assert (place.outside / "cache").exists()


def test_a_live_run_and_code_of_no_run_are_not_guarded(place: Place) -> None:
    """The hook stays in the process: it must not be heard of by anybody else."""
    with pytest.raises(UndeclaredWrite):
        shadow(lambda: place.precious.unlink())
    assert shadow(lambda: place.precious.write_text("live"), shadow=False) == "done"
    place.precious.write_text("nobody's")


@pytest.mark.parametrize("bad", ["api.example.com", [7], [""], ["https://example.com"], ["host:port"]])
def test_reads_that_say_nothing_are_refused_at_once(bad: Any) -> None:
    with pytest.raises(BadOption, match="reads="):
        step(reads=bad)(lambda: None)

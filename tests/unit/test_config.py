"""`milepost.toml` is read strictly: what is wrong is named by file, key, what was expected and what was found."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from milepost.config import Config, find_config, load_config, read_config, time_span
from milepost.errors import BadConfig


def _written(folder: Path, text: str) -> Path:
    file = folder / "milepost.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_every_key_arrives_with_its_type(tmp_path: Path) -> None:
    """What the page lists is what is read."""
    found = read_config(
        _written(
            tmp_path,
            '[notify]\nurls = ["env:CHAT"]\ncommand = ["notify-send", "--"]\nremind_after = "4h"\n'
            'escalate_after = "1.5d"\nescalate_to = ["env:BOSS"]\n[watch]\nat_once = 4\n[console]\nurl = "https://here"\n',
        )
    )
    assert found.notify.urls == ("env:CHAT",)
    assert found.notify.command == ("notify-send", "--")
    assert (found.notify.remind_after, found.notify.escalate_after) == (timedelta(hours=4), timedelta(hours=36))
    assert found.notify.reaches_somebody
    assert (found.watch.at_once, found.watch.restarts, found.console.url) == (4, 5, "https://here")


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ("[notify]\nurlz = []\n", "notify.urlz", "notify.urls may be meant"),
        ("[notfy]\n", "notfy", "notify may be meant"),
        ("notify = 3\n", "notify", "expected a table, [notify], found 3"),
        ('[notify]\nurls = "one"\n', "notify.urls", 'expected a list of texts, such as ["…", "…"], found a text'),
        ("[notify]\nurls = [1]\n", "notify.urls", "found a list of something else"),
        ('[console]\nurl = "javascript:alert(1)"\n', "console.url", "expected an address such as https://"),
        ('[console]\nurl = "console.example"\n', "console.url", "expected an address such as https://"),
        ('[console]\nurl = "https://"\n', "console.url", "expected an address such as https://"),
        ('[console]\nurl = "https://a.example/?x=1"\n', "console.url", "expected an address such as https://"),
        ('[console]\nurl = "https://me:hunter2@a.example"\n', "console.url", "expected an address such as https://"),
        ('[console]\ntokens_file = ""\n', "console.tokens_file", "not empty"),
        ('[notify]\nremind_after = "4 hours"\n', "notify.remind_after", "found '4 hours'"),
        ('[notify]\nremind_after = "999d"\n', "notify.remind_after", "at most 365 days"),
        ('[watch]\nlongest_wait = "15m"\n', "watch.longest_wait", "may be minutes or months"),
        ("[watch]\nat_once = 0\n", "watch.at_once", "expected a whole number from 1"),
        ("[watch]\nat_once = true\n", "watch.at_once", "found true"),
        ("[watch\n", "the file", "expected TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, key: str, says: str) -> None:
    """A typo that is ignored is a question nobody hears of."""
    file = _written(tmp_path, text)
    with pytest.raises(BadConfig) as raised:
        read_config(file)
    assert raised.value.key == key
    assert str(file) in str(raised.value)
    assert says in str(raised.value)


def test_a_secret_in_a_wrong_place_is_not_shown(tmp_path: Path) -> None:
    """Messages end up in terminals and mails."""
    with pytest.raises(BadConfig) as raised:
        read_config(_written(tmp_path, '[notify]\nurls = "mailto://me:hunter2@host"\n'))
    assert "hunter2" not in str(raised.value)


def test_it_is_found_upwards_then_beside_the_store(tmp_path: Path) -> None:
    """Like the store itself; a store named by MILEPOST_STORE has its settings beside it."""
    inner, elsewhere = tmp_path / "a" / "b", tmp_path / "elsewhere"
    inner.mkdir(parents=True)
    (elsewhere / ".milepost").mkdir(parents=True)
    store = elsewhere / ".milepost" / "store.sqlite"
    assert load_config(inner, store) == Config()
    beside = _written(elsewhere, "")
    assert find_config(inner, store) == beside
    upwards = _written(tmp_path / "a", "")
    assert find_config(inner, store) == upwards


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_somebody_else_is_not_obeyed(tmp_path: Path) -> None:
    """Whoever can write to a folder above yours must not choose the command that your runs start."""
    inner, theirs = tmp_path / "project", tmp_path / "theirs"
    inner.mkdir()
    theirs.mkdir()
    file = _written(tmp_path, '[notify]\ncommand = ["their-program"]\n')
    os.chown(file, 12345, 12345)
    os.chown(inner, 12345, 12345)
    with pytest.raises(BadConfig, match="found user number 12345"):
        load_config(inner)
    os.chown(theirs, 12345, 12345)  # their store, which is open only because MILEPOST_STORE names it
    assert load_config(inner, theirs / "store.sqlite").notify.command == ("their-program",)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_link_of_somebody_else_is_not_followed(tmp_path: Path) -> None:
    """To a file of yours that says something for another project."""
    (tmp_path / "mine").mkdir()
    _written(tmp_path / "mine", "")
    (tmp_path / "milepost.toml").symlink_to("mine/milepost.toml")
    os.lchown(tmp_path / "milepost.toml", 12345, 12345)
    with pytest.raises(BadConfig, match="found user number 12345"):
        load_config(tmp_path)


def test_what_bears_its_name_and_is_no_file_is_not_passed_over(tmp_path: Path) -> None:
    """Somebody meant something by it, and would wait for notifications that never come."""
    (tmp_path / "milepost.toml").symlink_to("gone.toml")
    with pytest.raises(BadConfig, match="No such file"):
        load_config(tmp_path)
    (tmp_path / "milepost.toml").unlink()
    (tmp_path / "milepost.toml").mkdir()
    with pytest.raises(BadConfig, match="found a folder"):
        load_config(tmp_path)
    (tmp_path / "milepost.toml").rmdir()
    os.mkfifo(tmp_path / "milepost.toml")  # opening it would wait for somebody to write
    with pytest.raises(BadConfig, match="expected a regular file, found a FIFO"):
        load_config(tmp_path)


def test_a_file_that_everybody_may_write_is_not_obeyed(tmp_path: Path) -> None:
    _written(tmp_path, "").chmod(0o666)
    with pytest.raises(BadConfig, match="found mode 666"):
        load_config(tmp_path)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("30s", timedelta(seconds=30)),
        ("15min", timedelta(minutes=15)),
        (" 1.5 h ", timedelta(minutes=90)),
        ("2d", timedelta(days=2)),
        ("6w", timedelta(weeks=6)),
        ("0d", timedelta(0)),
        *((text, None) for text in ("6m", "6M", "", "6", "d", "-1d", "٣d", "1e3s", "6months", "9999999d")),
    ],
)
def test_a_time_is_read_in_one_way_everywhere(text: str, span: timedelta | None) -> None:
    """`6m` was six minutes to one command, and six months to whoever deletes what is older."""
    assert time_span(text) == span

"""What a page says of recorded texts and values: short, exact where it matters, and never more than text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from milepost.console.saying import in_short, key_shown, moment_words, prose, scalar, since

NOW = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)
DIGEST = "e3dcb2379e6bf84b69bfd9c6a4539aed3d6f8071fbdd5c059b30a077e62ad31a"
KEY = "mp1-vbop72ri65tvd26jm3dvjvuksi44tabi"


def before(**passed: float) -> str:
    return (NOW - timedelta(**passed)).isoformat()


@pytest.mark.parametrize(
    ("passed", "said"),
    [
        ({"seconds": 20}, "just now"),
        ({"seconds": 73}, "1 min ago"),
        ({"minutes": 59}, "59 min ago"),
        ({"minutes": 125}, "2 h ago"),
        ({"days": 3, "hours": 4}, "3 d ago"),
        ({"days": 40}, "21 Oct"),
        ({"days": 400}, "26 Oct 2025"),
        ({"seconds": -90}, "in the future by this clock"),
    ],
)
def test_ages_are_said_as_people_say_them(passed: dict[str, float], said: str) -> None:
    assert since(before(**passed), NOW) == said


def test_a_time_ahead_says_when_and_how_far_off_it_is() -> None:
    assert moment_words(before(hours=-5, minutes=-58), NOW) == "30 Nov 23:58 UTC, in 5 h 58 min"
    assert moment_words(before(hours=2), NOW) == "30 Nov 16:00 UTC"


def test_a_sentence_shows_commands_as_code_times_in_words_and_digests_short() -> None:
    """The whole stands in a title: nothing that is recorded is out of reach."""
    shown = prose(f"waits until {before(hours=-1)}: `milepost resume x` finds {DIGEST}", NOW)
    assert "<code>milepost resume x</code>" in shown
    assert "30 Nov 19:00 UTC, in 1 h</time>" in shown
    assert f'title="{DIGEST}">e3dcb2379e6b…</code>' in shown


@pytest.mark.parametrize("text", ["`<b>`", "2026-99-99T99:99:99+00:00 <b>", "<b>\u202e\x1b[31m", "`", "a`b<i>`c"])
def test_whatever_stands_in_a_sentence_is_text(text: str) -> None:
    shown = str(prose(text, NOW))
    assert "<b>" not in shown
    assert "<i>" not in shown
    assert shown.isprintable()


def test_what_people_named_themselves_is_never_cut_and_our_keys_are_copied_whole() -> None:
    assert (
        str(key_shown("invoice 2026-10 of Nordic Bearings AB")) == "<code>invoice 2026-10 of Nordic Bearings AB</code>"
    )
    assert f'data-copy="{KEY}"' in key_shown(KEY)
    assert "data-copy" not in key_shown(f'{KEY}" onclick="alert(1)')


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "none"), (True, "true"), (7, "7"), (1.50, "1.5"), ("", "empty text"), ("a\n<b>", "a\n&lt;b&gt;")],
)
def test_plain_values_are_said_without_losing_their_kind(value: object, said: str) -> None:
    assert said in scalar(value, NOW)


def test_a_request_in_one_line_is_cut_not_wrapped() -> None:
    assert (
        in_short({"arguments": {"to": "Ana", "amount": 7, "lines": [{}, {}]}}) == "to: Ana, amount: 7, lines: 2 items"
    )
    assert len(in_short({"arguments": {"to": "x" * 500}})) == 110

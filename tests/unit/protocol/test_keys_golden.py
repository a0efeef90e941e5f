"""The key format, fixed for ever: a changed key would make every open intent in the field unfindable."""

from __future__ import annotations

import re
import unicodedata

import pytest

from milepost.protocol.keys import Key, derive_key

GOLDEN = [
    (("reconcile", "2026-10", "post", "post", None), "mp1-eftbx6v2reuza2qjb2trgnmse465yvns"),
    (("reconcile", "2026-10", "post[INV-7]", "post", "INV-7"), "mp1-ozahioqy5qa7hweoj64l2y3344uk6svj"),
    (("reconcile", "2026-10", "batch#2/post[INV-7]", "post", "INV-7"), "mp1-a4yatbd5muy7d7kees6hmvu7i6wmrd2i"),
    (("reconcile", "2026-11", "post[INV-7]", "post", "INV-7"), "mp1-gizmx4hoq2gjw5covuvw6dbnu2egv6xo"),
    (("other", "2026-10", "post[INV-7]", "post", "INV-7"), "mp1-bo4r4frczn5wro3abzpz2sfg7rzpeekd"),
    (("reconcile", "2026-10", "post[INV-7]", "post_again", "INV-7"), "mp1-7yo3d32joz56dzjfuyspsv64tllafcsl"),
    (("reconcile", "", "", "post", "INV-7"), "mp1-ack6sf3gxmsijkxgz4g776uuiio2o5af"),
    (("reconcile", "2026-10", "post[]", "post", ""), "mp1-4jbkijiugrdl4bit3cdp3uquhfnbreb4"),
    (("abgleich", "Müller & Söhne", "büche[Größe]", "büche", "Größe"), "mp1-uwv3tepppklms2bxddlcw6fv2bi5nzfa"),
    (("照合", "2026年10月", "投稿[請求書七]", "投稿", "請求書七"), "mp1-dw5eteg6xyrrhaijv3rsnffxa2zqyf42"),
]


@pytest.mark.parametrize(("parts", "key"), GOLDEN)
def test_a_key_is_what_it_always_was(parts: tuple[str, str, str, str, str | None], key: str) -> None:
    """If this fails, the change has to be taken back, not the expectation changed."""
    assert str(derive_key(*parts)) == key


def test_a_key_with_a_variant_is_what_it_always_was() -> None:
    """The number of the answer that allowed another request: one more part, none when there was no such answer."""
    parts = ("reconcile", "2026-10", "post[INV-7]", "post", "INV-7")
    assert str(derive_key(*parts, 3)) == "mp1-aac3zuuwtydmihtjahpvcexg7vgz5jwm"
    assert derive_key(*parts, 0) == derive_key(*parts)
    assert len({derive_key(*parts, number) for number in range(50)}) == 50


def test_golden_keys_are_all_different() -> None:
    assert len({key for _, key in GOLDEN}) == len(GOLDEN)


def test_a_key_has_a_form_that_every_provider_takes() -> None:
    """36 characters, lower-case letters, digits and one hyphen: fits a UUID column, a header and a Message-ID."""
    for _, key in GOLDEN:
        assert re.fullmatch(r"mp1-[a-z2-7]{32}", key)


def test_composed_and_decomposed_spellings_have_one_key() -> None:
    """A file name typed on one system and copied on another is the same thing."""
    composed = ("abgleich", "Müller", "büche[Größe]", "büche", "Größe")
    decomposed = tuple(unicodedata.normalize("NFD", part) for part in composed)
    assert decomposed != composed
    assert derive_key(*composed) == derive_key(*decomposed)


def test_parts_cannot_be_shifted_into_each_other() -> None:
    """Each part is prefixed with its length: `a` + `bc` is not `ab` + `c`."""
    keys = {
        derive_key("a", "bc", "d", "e", "f"),
        derive_key("ab", "c", "d", "e", "f"),
        derive_key("a", "b", "cd", "e", "f"),
        derive_key("a", "bc", "de", "", "f"),
        derive_key("a", "bc", "d", "ef", ""),
        derive_key("a", "bc", "d", "e=f", None),
        derive_key("a", "bc", "d", "e", "=f"),
        derive_key("a", "bc", "d", "e\0", "f"),
    }
    assert len(keys) == 8


def test_no_key_and_an_empty_key_are_different() -> None:
    assert derive_key("t", "f", "p", "e", None) != derive_key("t", "f", "p", "e", "")


def test_a_key_is_opaque_and_hashable() -> None:
    """`str(key)` is what is sent; a key is not a text by accident."""
    key = Key("mp1-x")
    assert not isinstance(key, str)
    assert (str(key), repr(key)) == ("mp1-x", "Key('mp1-x')")
    assert {key: 1}[Key("mp1-x")] == 1
    assert key != "mp1-x"

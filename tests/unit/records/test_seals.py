"""Seals: each covers all it says and the one before it, so that no record can stand in another history."""

from __future__ import annotations

import pytest

from milepost.errors import BadOption, CorruptRecord
from milepost.records.seal import Place, Sealer, key_name, seal_key_in
from milepost.stores.contract import StoredRecord

KEYS = {"with a key": b"k" * 32, "without": None}
FIRST = (1, "outer", "step_started", b'{"a":1}')
SECOND = (2, "outer", "step_verified", b'{"b":2}')


@pytest.fixture(params=list(KEYS))
def sealer(request: pytest.FixtureRequest) -> Sealer:
    return Sealer("r", KEYS[request.param])


def history(sealer: Sealer, body: bytes = FIRST[3]) -> list[StoredRecord]:
    """Return a chain of two records whose first says `body`."""
    first = sealer.seal(None, *FIRST[:3], body)
    return [StoredRecord(*FIRST[:3], body, first), StoredRecord(*SECOND, sealer.seal(first, *SECOND))]


def test_a_seal_covers_each_field_and_the_seal_before(sealer: Sealer) -> None:
    """What is left out of a seal can be changed by anyone."""
    base = (b"\1" * 32, 2, "a", "b", b"c")
    others = [(b"\2" * 32, 2, "a", "b", b"c"), (None, 2, "a", "b", b"c"), (b"\1" * 32, 3, "a", "b", b"c")]
    others += [(b"\1" * 32, 2, "x", "b", b"c"), (b"\1" * 32, 2, "a", "x", b"c"), (b"\1" * 32, 2, "a", "b", b"x")]
    seals = [sealer.seal(*fields) for fields in (base, *others)]
    assert len(set(seals)) == len(seals)


def test_what_one_field_ends_with_is_not_what_the_next_begins_with(sealer: Sealer) -> None:
    """Fields are told apart by their length, not by a sign that may occur in them."""
    assert sealer.seal(None, 1, "ab", "k", b"c") != sealer.seal(None, 1, "a", "k", b"bc")


def test_another_run_and_another_key_seal_otherwise() -> None:
    """A record of one run, or of who has no key, is worth nothing in another."""
    seals = {Sealer(run, key).seal(None, *FIRST) for run in ("r", "s") for key in (None, b"k", b"l")}
    assert len(seals) == 6


def test_a_record_of_another_history_of_its_chain_is_refused_by_name(sealer: Sealer) -> None:
    """Both histories were sealed by us: only the seal before tells them apart."""
    one, other = history(sealer), history(sealer, b'{"a":9}')
    assert list(sealer.checked(one, {})) == one
    with pytest.raises(CorruptRecord, match=r"record 2 \(step_verified in outer\)"):
        list(sealer.checked([other[0], one[1]], {}))


def test_many_records_are_checked_as_each_alone_up_to_the_first_that_is_not_as_sealed(sealer: Sealer) -> None:
    """What stands before it can be shown to people; where each chain ends is known for whoever reads on."""
    one, other = history(sealer), history(sealer, b'{"a":9}')
    task = StoredRecord(3, "", "run_ended", b"{}", sealer.seal(None, 3, "", "run_ended", b"{}"))
    ends: dict[str, bytes] = {}
    assert list(sealer.checked([one[0], task], ends)) == [one[0], task]
    assert list(sealer.checked([one[1]], ends)) == [one[1]]
    assert ends == {"outer": one[1].seal, "": task.seal}
    found = sealer.checked([other[0], one[1]], {})
    assert next(found) == other[0]
    with pytest.raises(CorruptRecord, match=r"record 2 \(step_verified in outer\)"):
        next(found)


def test_the_head_covers_the_place_of_every_record(sealer: Sealer) -> None:
    """Also of those in chains that a resume does not read."""
    places = [Place(r.seq, r.chain, r.seal) for r in history(sealer)]
    head = sealer.head_of(places)
    assert head is not None
    sealer.check_head(2, head, places)
    moved = [places[0]._replace(chain="elsewhere"), places[1]]
    swapped = [places[0]._replace(seal=places[1].seal), places[1]]
    for bad in (moved, swapped):
        with pytest.raises(CorruptRecord, match="the head"):
            sealer.check_head(2, head, bad)


def test_a_tail_cut_off_and_a_tail_put_on_are_told_apart(sealer: Sealer) -> None:
    """The reader learns which record is gone, or which is too many."""
    places = [Place(r.seq, r.chain, r.seal) for r in history(sealer)]
    head = sealer.head_of(places) or b""
    with pytest.raises(CorruptRecord, match="counts 2 records, 1 are there"):
        sealer.check_head(2, head, places[:1])
    with pytest.raises(CorruptRecord, match="record 2 cannot be trusted: it stands behind the sealed head"):
        sealer.check_head(1, sealer.head_of(places[:1]) or b"", places)
    with pytest.raises(CorruptRecord, match=r"record 1 .*: it is not there, record 2 stands in its place"):
        sealer.check_head(2, head, places[1:])


def test_an_edited_record_is_refused(sealer: Sealer) -> None:
    """The simplest attack of all."""
    first, second = history(sealer)
    with pytest.raises(CorruptRecord, match=r"record 1 \(step_started in outer\)"):
        list(sealer.checked([first._replace(body=b'{"a":2}'), second], {}))


def test_a_key_has_a_name_that_does_not_tell_it() -> None:
    """A missing key is told from a wrong one without keeping either."""
    assert key_name(None) is None
    assert key_name(b"k") != key_name(b"l")
    assert b"k" * 4 not in str(key_name(b"k" * 32)).encode()


@pytest.mark.parametrize("text", ["abc", "x" * 15, "ä" * 7])
def test_a_key_that_could_be_guessed_is_none(text: str) -> None:
    with pytest.raises(BadOption, match="at least 16 bytes") as refused:
        seal_key_in({"MILEPOST_SEAL_KEY": text})
    assert "secrets.token_hex(32)" in refused.value.hint


@pytest.mark.parametrize(("environ", "key"), [({}, None), ({"MILEPOST_SEAL_KEY": ""}, None)])
def test_no_key_is_no_key(environ: dict[str, str], key: bytes | None) -> None:
    assert seal_key_in(environ) is key
    assert seal_key_in({"MILEPOST_SEAL_KEY": "ä" * 8}) == "ä".encode() * 8


def test_a_head_moved_record_by_record_is_the_head_of_all() -> None:
    """A run moves it with each record; a resume takes all at once, in a loop of its own."""
    sealer = Sealer("r", None)
    places = [Place(number, chain, bytes([number]) * 32) for number, chain in enumerate(("", "match", "", "match"), 1)]
    head = None
    for place in places:
        head = sealer.head(head, *place)
    assert head == sealer.head_of(places)

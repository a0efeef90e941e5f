"""The journal of a stopped run is edited by somebody who can write to the file: each edit is refused by name.

Without a seal key every clumsy edit and all damage shows; with one also the work of a forger who knows the format.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import tampering
from tampering import KEYS, OTHER, REPORT, RUN, Scene, flipped, ledger, refused

from milepost.errors import CorruptRecord, RefusedError, SealKeyMissing, StoreWentBack
from milepost.records.seal import Place, Sealer

COLUMNS = ("run", "seq", "chain", "kind", "body", "seal")
NAMES = ", ".join(COLUMNS)
SEALED_INSIDE = ("finished", "unfinished/book")
"""The verified steps whose inner records a resume does not read: `verify` does."""


def records(scene: Scene) -> list[tuple[int, str]]:
    return scene.rows("SELECT seq, chain FROM journal WHERE run = ? ORDER BY seq", scene.number())


def inside_what_is_sealed(chain: str) -> bool:
    return any(chain == path or chain.startswith(f"{path}/") for path in SEALED_INSIDE)


def assert_refused_by_name(scene: Scene, *names: str) -> None:
    """A resume refuses, changes nothing and runs nothing; `verify` says so too."""
    error = refused(scene)
    assert isinstance(error, CorruptRecord), error
    assert error.exit_status == 3
    if names:
        assert any(name in str(error) for name in names), str(error)
    assert scene.complaints()


def attempts(scenes: Callable[[], Scene]) -> Iterator[tuple[Scene, int, str]]:
    """Yield a fresh scene for each record of the journal, with its number and chain."""
    for seq, chain in records(first := scenes()):
        scene = scenes()
        yield scene, seq, chain
        shutil.rmtree(scene.folder)
    shutil.rmtree(first.folder)


def test_left_alone_it_goes_on_and_sends_nothing_twice(scene: Scene) -> None:
    """The control: without it every refusal below would prove nothing."""
    assert scene.complaints() == []
    assert scene.resume() == REPORT
    assert ledger.events() == ["unfinished"]
    assert scene.complaints() == []
    assert scene.resume() == REPORT


@pytest.mark.parametrize("column", COLUMNS)
def test_one_flipped_bit_in_any_record_is_refused_by_name(scenes: Callable[[], Scene], column: str) -> None:
    for scene, seq, chain in attempts(scenes):
        (value,) = scene.rows(f"SELECT {column} FROM journal WHERE run = 1 AND seq = ?", seq)[0]
        changed = {"run": 77, "seq": 1000 + seq, "chain": f"{value}x"}.get(column, flipped(value))
        scene.change(f"UPDATE journal SET {column} = ? WHERE run = 1 AND seq = ?", changed, seq)
        if inside_what_is_sealed(chain) and column in ("body", "kind"):
            assert any(f"record {seq} " in said for said in scene.complaints())
            assert scene.resume() == REPORT, "it is not read, let alone believed"
            assert ledger.sends == []
        else:
            assert_refused_by_name(scene, f"record {seq}", "the head", "the journal")


def test_every_byte_of_every_field_is_under_the_seal() -> None:
    """Pure, so every byte of a chain of records can be tried, not only one of each."""
    for key in KEYS.values():
        sealer = Sealer(RUN, key)
        lines: list[Any] = []
        before = None
        for seq, (chain, kind, body) in enumerate([("", "a", b"{}"), ("", "bc", b'{"x":1}'), ("", "d", b"")], 1):
            before = sealer.seal(before, seq, chain, kind, body)
            lines.append(_Line(seq, chain, kind, body, before))
        assert _last_seal(sealer, lines) == before
        for number, line in enumerate(lines):
            for other in _neighbours(line):
                with pytest.raises(CorruptRecord, match=f"record {other.seq} "):
                    _last_seal(sealer, [*lines[:number], other, *lines[number + 1 :]])


def _last_seal(sealer: Sealer, lines: list[Any]) -> bytes:
    return list(sealer.checked(lines, {}))[-1].seal


class _Line:
    def __init__(self, seq: int, chain: str, kind: str, body: bytes, seal: bytes) -> None:
        self.seq, self.chain, self.kind, self.body, self.seal = seq, chain, kind, body, seal


def _neighbours(line: _Line) -> Iterator[_Line]:
    seq, chain, kind, body, seal = line.seq, line.chain, line.kind, line.body, line.seal
    yield _Line(seq + 1, chain, kind, body, seal)
    yield _Line(seq, chain + "x", kind, body, seal)
    yield _Line(seq, chain, kind + "x", body, seal)
    yield _Line(seq, kind, chain, body, seal)
    for place in range(len(body)):
        for bit in range(8):
            yield _Line(seq, chain, kind, _flip(body, place, bit), seal)
    for place in range(len(seal)):
        yield _Line(seq, chain, kind, body, _flip(seal, place, 3))
    yield _Line(seq, chain, kind, body + b" ", seal)
    yield _Line(seq, chain, kind, body, seal[:-1])
    yield _Line(seq, chain, kind, body, b"")


def _flip(data: bytes, place: int, bit: int) -> bytes:
    changed = bytearray(data)
    changed[place] ^= 1 << bit
    return bytes(changed)


def test_a_deleted_record_is_missed(scenes: Callable[[], Scene]) -> None:
    for scene, seq, _ in attempts(scenes):
        scene.change("DELETE FROM journal WHERE run = 1 AND seq = ?", seq)
        assert_refused_by_name(scene, f"record {seq}", "the journal")


def test_two_records_whose_bodies_were_swapped_are_refused(scenes: Callable[[], Scene]) -> None:
    for scene, seq, chain in attempts(scenes):
        if seq > 1 and not inside_what_is_sealed(chain):
            rows = scene.rows("SELECT body FROM journal WHERE run = 1 AND seq IN (?, ?) ORDER BY seq", seq - 1, seq)
            for number, (body,) in zip((seq, seq - 1), rows, strict=True):
                scene.change("UPDATE journal SET body = ? WHERE run = 1 AND seq = ?", body, number)
            assert_refused_by_name(scene, f"record {seq - 1}", f"record {seq}")


def test_two_records_that_changed_places_are_refused(scenes: Callable[[], Scene]) -> None:
    """Whole rows, seals included: every byte is genuine, only the order is not."""
    for scene, seq, _ in attempts(scenes):
        if seq > 1:
            for old, new in ((seq, 0), (seq - 1, seq), (0, seq - 1)):
                scene.change("UPDATE journal SET seq = ? WHERE run = 1 AND seq = ?", new, old)
            assert_refused_by_name(scene)


def test_a_record_repeated_at_the_end_is_refused(scenes: Callable[[], Scene]) -> None:
    for scene, seq, _ in attempts(scenes):
        count = len(records(scene))
        scene.change(
            f"INSERT INTO journal ({NAMES}) "
            "SELECT run, ?, chain, kind, body, seal FROM journal WHERE run = 1 AND seq = ?",
            count + 1,
            seq,
        )
        assert_refused_by_name(scene, f"record {count + 1}")


def test_a_record_copied_from_another_run_is_refused(scenes: Callable[[], Scene]) -> None:
    """The same task, the same place, another month: only the run's name in the seal tells them apart."""
    for scene, seq, chain in attempts(scenes):
        if not inside_what_is_sealed(chain):
            scene.change("DELETE FROM journal WHERE run = 1 AND seq = ?", seq)
            scene.change("UPDATE journal SET run = 1 WHERE run = ? AND seq = ?", scene.number(OTHER), seq)
            assert_refused_by_name(scene, f"record {seq}", "the head")


def test_the_whole_journal_of_another_run_is_refused(scene: Scene) -> None:
    scene.change("DELETE FROM journal WHERE run = 1")
    scene.change("UPDATE journal SET run = 1 WHERE run = 2")
    head = scene.rows("SELECT head_seq, head_seal FROM runs WHERE run_id = ?", OTHER)[0]
    scene.change("UPDATE runs SET head_seq = ?, head_seal = ? WHERE run_id = ?", *head, RUN)
    assert_refused_by_name(scene, "record 1", "the head")


def test_a_record_hidden_in_another_chain_is_missed(scenes: Callable[[], Scene]) -> None:
    """A chain that nobody reads would swallow the end of one that is read: the head counts places, too."""
    for hiding_place in ("finished/book", "unfinished/nowhere"):
        for scene, seq, chain in attempts(scenes):
            if chain != hiding_place:
                scene.change("UPDATE journal SET chain = ? WHERE run = 1 AND seq = ?", hiding_place, seq)
                assert_refused_by_name(scene, f"record {seq}", "the head")


def test_an_applied_effect_replaced_by_a_harmless_record_is_not_sent_again(scene: Scene) -> None:
    """The end of an inner chain, taken out with its count made up for: the plan would post the line once more."""
    (seq,) = scene.rows("SELECT max(seq) FROM journal WHERE run = 1 AND chain = 'unfinished'")[0]
    scene.change("UPDATE journal SET chain = 'nowhere', body = x'7b7d' WHERE run = 1 AND seq >= ? - 1", seq)
    assert_refused_by_name(scene, "the head", f"record {seq}")
    assert ledger.sends == []


# ── the head and the row of the run ──


@pytest.mark.parametrize("column", ["head_seq", "head_seal"])
def test_a_changed_head_is_refused(scene: Scene, column: str) -> None:
    (value,) = scene.rows(f"SELECT {column} FROM runs WHERE run_id = ?", RUN)[0]
    scene.change(f"UPDATE runs SET {column} = ? WHERE run_id = ?", flipped(value), RUN)
    assert_refused_by_name(scene, "head")


def test_a_tail_cut_off_with_the_head_set_back_is_refused(scenes: Callable[[], Scene]) -> None:
    """Somebody who knows no seals: the old seal of the head fits no other place."""
    for scene, seq, _ in attempts(scenes):
        scene.change("DELETE FROM journal WHERE run = 1 AND seq >= ?", seq)
        scene.change("UPDATE runs SET head_seq = ? WHERE run_id = ?", seq - 1, RUN)
        if seq > 1:
            assert_refused_by_name(scene, "the head")


def test_a_tail_cut_off_with_the_head_of_an_older_copy_is_a_store_that_went_back(scenes: Callable[[], Scene]) -> None:
    """Every seal is genuine, as the store once had it: only the witness knows that there was more."""
    for scene, seq, _ in attempts(scenes):
        rows = scene.rows("SELECT seq, chain, seal FROM journal WHERE run = 1 AND seq < ? ORDER BY seq", seq)
        head = Sealer(RUN, scene.seal_key).head_of(Place(*row) for row in rows)
        scene.change("DELETE FROM journal WHERE run = 1 AND seq >= ?", seq)
        older = "UPDATE runs SET head_seq = ?, head_seal = ?, status = 'running' WHERE run_id = ?"
        scene.change(older, seq - 1, head or b"", RUN)
        with pytest.raises(StoreWentBack):
            scene.run(RUN, tampering.tampered_month, "2026-10")
        assert ledger.events() == []


@pytest.mark.parametrize(
    ("column", "value", "name"),
    [
        ("task", "another", "belongs to task"),
        ("family", OTHER, "family"),
        ("seal_name", "0badc0de", "sealed with key"),
        ("token", 0, "fencing token"),
        ("number", 77, "the journal"),
        ("status", "no such status", "status"),
    ],
)
def test_a_changed_fact_in_the_row_of_the_run_is_refused(scene: Scene, column: str, value: object, name: str) -> None:
    if column == "token":  # it was resumed before: the journal knows how far the token had come
        ledger.mended = False
        with pytest.raises(Exception, match="the power went"):
            scene.resume()
    scene.change(f"UPDATE runs SET {column} = ? WHERE run_id = ?", value, RUN)
    error = refused(scene)
    assert isinstance(error, RefusedError)
    assert name in str(error)


@pytest.mark.parametrize("status", ["done", "stopped", "cancelled", "waiting"])
def test_a_status_that_the_journal_does_not_have_is_refused(scene: Scene, status: str) -> None:
    """Work is neither skipped nor a result invented because of it, and the row is named."""
    scene.change("UPDATE runs SET status = ? WHERE run_id = ?", status, RUN)
    assert any("list of runs" in said for said in scene.complaints())
    assert_refused_by_name(scene, "its row in the list of runs", f"it says {status}, the journal says")


@pytest.mark.parametrize(
    ("column", "name", "value"),
    [
        ("status_at", "at", "2020-01-01T00:00:00.000000+00:00"),
        ("verified_count", "verified_count", 99),
        ("applied_count", "applied_count", 99),
        ("next_action", "next_action", "pay everybody twice"),
        ("detail", "detail", "all is well"),
        ("cost", "cost", "0.01"),
        ("tokens", "tokens", 7),
    ],
)
def test_what_people_read_in_the_list_of_runs_is_proven_by_verify(
    scene: Scene, column: str, name: str, value: object
) -> None:
    """A view that says another thing than the journal was written by somebody else."""
    assert scene.complaints() == []
    scene.change(f"UPDATE runs SET {column} = ? WHERE run_id = ?", value, RUN)
    (said,) = scene.complaints()
    assert "its row in the list of runs" in said
    assert f"it says {name} {value!r}, the journal says" in said


@pytest.mark.parametrize("status", ["failed", "running", "interrupted"])
def test_an_end_that_the_row_denies_is_refused(scene: Scene, status: str) -> None:
    assert scene.resume() == REPORT
    before = scene.rows("SELECT count(*) FROM journal")
    scene.change("UPDATE runs SET status = ? WHERE run_id = ?", status, RUN)
    ran = len(ledger.events())
    error = refused(scene)
    assert f"it says {status}, the journal says done" in str(error)
    assert len(ledger.events()) == ran
    assert scene.rows("SELECT count(*) FROM journal") == before


@pytest.mark.parametrize("column", ["started_at", "beat_at", "status_at"])
def test_a_time_that_is_none_is_refused_by_name(scene: Scene, column: str) -> None:
    """`runs` ended in a traceback of ours."""
    scene.change(f"UPDATE runs SET {column} = 'garbage' WHERE run_id = ?", RUN)
    assert f"its {column} is 'garbage', which is no time" in str(refused(scene))


def test_a_forged_result_is_not_returned(scene: Scene) -> None:
    """A `run_ended` that somebody wrote, with a seal that somebody made up."""
    count = len(records(scene))
    body = scene.rows("SELECT body FROM journal WHERE run = 1 AND seq = 1")[0][0]
    scene.change(f"INSERT INTO journal ({NAMES}) VALUES (1, ?, '', 'run_ended', ?, ?)", count + 1, body, bytes(32))
    scene.change("UPDATE runs SET head_seq = ?, status = 'done' WHERE run_id = ?", count + 1, RUN)
    assert_refused_by_name(scene, f"record {count + 1}", "the head")


# ── a forger who knows how seals are made ──


def forge(scene: Scene, key: bytes | None) -> None:
    """Write another outcome into the journal and recompute every seal after it, with the key that is at hand."""
    sealer = Sealer(RUN, key)
    chains: dict[str, bytes] = {}
    places: list[Place] = []
    rows = scene.rows("SELECT seq, chain, kind, body FROM journal WHERE run = 1 ORDER BY seq")
    for seq, chain, kind, body in rows:
        forged = body.replace(b"receipt-2026-10-3", b"receipt-2026-10-9")
        seal = chains[chain] = sealer.seal(chains.get(chain), seq, chain, kind, forged)
        places.append(Place(seq, chain, seal))
        scene.change("UPDATE journal SET body = ?, seal = ? WHERE run = 1 AND seq = ?", forged, seal, seq)
    scene.change("UPDATE runs SET head_seal = ? WHERE run_id = ?", sealer.head_of(places), RUN)


@pytest.mark.parametrize("built", ["keyed"], indirect=True)
@pytest.mark.parametrize("stolen", [None, b"a guess"])
def test_with_a_seal_key_a_forger_who_knows_the_format_is_refused(scene: Scene, stolen: bytes | None) -> None:
    forge(scene, stolen)
    assert_refused_by_name(scene, "the head", "record 1 ")


@pytest.mark.parametrize("built", ["keyed"], indirect=True)
def test_a_forger_who_names_another_key_is_told_from_damage(scene: Scene) -> None:
    """The key's name is beside the run: with another one it is *cannot tell*, never *fine* and never *corrupt*."""
    forge(scene, None)
    scene.change("UPDATE runs SET seal_name = NULL WHERE run_id = ?", RUN)
    assert isinstance(refused(scene), SealKeyMissing)


@pytest.mark.parametrize("built", ["digests"], indirect=True)
def test_without_a_seal_key_this_machine_still_remembers_another_head(scene: Scene) -> None:
    forge(scene, None)
    assert any("went back" in said for said in scene.complaints())


def test_without_its_key_a_run_can_be_neither_trusted_nor_refused(scene: Scene) -> None:
    if scene.seal_key is None:
        error = refused(scene, seal_key=b"a key it never had")
    else:
        error = refused(scene, seal_key=None)
        assert isinstance(refused(scene, seal_key=b"the wrong key, long enough"), SealKeyMissing)
    assert isinstance(error, SealKeyMissing)
    assert "neither trusted nor refused" in str(error)
    assert scene.resume() == REPORT


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"at":' + b'{"a":' * 5000 + b"1" + b"}" * 5001,
        b"\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x8c\x06system\x93\x94.",
        b'{"__class__":"os.system","args":["true"]}',
        b'{"at":"x","path":7,"attempt":"many","output":{"digest":"../../etc/passwd","size":-1}}',
        b'{"at":"x","path":"p","attempt":1,"output":[]}',
        b"\xff\xfe",
        b"",
        b"null",
        b"1e999",
        b'"' + b"x" * 5_000_000 + b'"',
    ],
    ids=["brackets", "deep", "pickle", "class", "types", "shape", "utf-8", "empty", "null", "infinity", "large"],
)
def test_absurd_records_that_are_sealed_well_are_refused_not_run_into(scene: Scene, body: bytes) -> None:
    """A forger of plain digests, or a bug of ours: whatever stands there, the answer is a refusal, nothing else."""
    sealer = Sealer(RUN, scene.seal_key)
    rows = scene.rows("SELECT seq, chain, seal FROM journal WHERE run = 1 ORDER BY seq")
    places = [Place(*row) for row in rows]
    before = next(seal for _, chain, seal in reversed(rows) if chain == "")
    seal = sealer.seal(before, len(rows) + 1, "", "step_verified", body)
    scene.change(f"INSERT INTO journal ({NAMES}) VALUES (1, ?, '', 'step_verified', ?, ?)", len(rows) + 1, body, seal)
    head = sealer.head_of([*places, Place(len(rows) + 1, "", seal)])
    scene.change("UPDATE runs SET head_seq = ?, head_seal = ? WHERE run_id = ?", len(rows) + 1, head, RUN)
    assert_refused_by_name(scene, f"record {len(rows) + 1} ")

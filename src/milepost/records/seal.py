"""Seals: what makes a record refusable. Pure; the journal calls it to write, resume and `verify` to check.

Each body has its own chain: a record's seal covers its own fields and the seal before it in that chain.
The head seals the order and the chain of every record, so that a tail that is cut off, or hidden in a chain
nobody reads, shows. With a key all seals are HMACs: someone who can write to the database still cannot
rewrite history (design §7). With a key, rows that are written beside the journal are sealed one by one.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache, partial
from typing import NamedTuple, Protocol, TypeVar

from milepost.errors import BadOption, CorruptRecord
from milepost.records.outside import variable
from milepost.records.rows import AnswerRow, CancelRow, ClaimRow

Row = TypeVar("Row", AnswerRow, CancelRow, ClaimRow)
S = TypeVar("S", bound="Sealed")

KEY_SIZE_MIN = 16
"""Bytes a seal key has at least."""
MAKE_A_KEY = "Make one with: python -c 'import secrets; print(secrets.token_hex(32))'"
_FIRST = bytes(32)
_RECORD = b"milepost-record-1\0%d%b%b%b"
_HEAD = b"milepost-head-1\0%d%b%b%b"
"""What a seal and a head are taken over: the record's number, what many have in common, what is before, the rest."""
_KNOWN_MAX = 4096
"""Chains, and kinds of record in a chain, of which a process remembers what their seals have in common."""


class Sealed(Protocol):
    """The fields of a stored record that a seal covers, and the seal."""

    @property
    def seq(self) -> int: ...
    @property
    def chain(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def body(self) -> bytes: ...
    @property
    def seal(self) -> bytes: ...


class Place(NamedTuple):
    """Where a record stands: its number, its chain, its seal."""

    seq: int
    chain: str
    seal: bytes


class Sealer:
    """Seals and checks the journal of one run.

    `key` is the value of MILEPOST_SEAL_KEY as bytes, or None for plain SHA-256 digests: those show
    damage and clumsy edits, but anyone can recompute them.
    """

    def __init__(self, run_id: str, key: bytes | None) -> None:
        self._run = run_id.encode("utf-8")
        self._key = key
        self._mac = _digest if key is None else partial(hmac.digest, key, digest="sha256")

    def seal(self, before: bytes | None, seq: int, chain: str, kind: str, body: bytes) -> bytes:
        """Return the seal of one record after the one sealed `before` in the same chain (None: the first)."""
        return self._mac(_RECORD % (seq, _of_kind(self._run, chain, kind), before or _FIRST, body))

    def head(self, before: bytes | None, seq: int, chain: str, seal: bytes) -> bytes:
        """Return the seal of the run's head after one more record: its place, and the head before (None: the first)."""
        return self._mac(_HEAD % (seq, _of_chain(self._run, chain), before or _FIRST, seal))

    def head_of(self, places: Iterable[Place]) -> bytes | None:
        """Return the head after records in these places, None for none."""
        head, mac, run = None, self._mac, self._run
        for seq, chain, seal in places:  # as `head`, by the ten thousand
            head = mac(_HEAD % (seq, _of_chain(run, chain), head or _FIRST, seal))
        return head

    def checked(self, records: Iterable[S], ends: dict[str, bytes]) -> Iterator[S]:
        """Yield records in order, each checked after the one before in its chain. Raises: CorruptRecord.

        `ends` holds the last seal of each chain, as far as it was read before; it is carried on.
        """
        mac, equal, run = self._mac, hmac.compare_digest, self._run
        for record in records:  # as `check`, by the ten thousand
            chain = record.chain
            where = _of_kind(run, chain, record.kind)
            seal = mac(_RECORD % (record.seq, where, ends.get(chain, _FIRST), record.body))
            if not equal(seal, record.seal):
                raise self._unfit(record)
            ends[chain] = seal
            yield record

    def check(self, record: Sealed, before: bytes | None) -> bytes:
        """Check one record after the one sealed `before` in its chain; return its seal. Raises: CorruptRecord."""
        expected = self.seal(before, record.seq, record.chain, record.kind, record.body)
        if not hmac.compare_digest(expected, record.seal):
            raise self._unfit(record)
        return expected

    def _unfit(self, record: Sealed) -> CorruptRecord:
        return self.corrupt(record, "its seal does not fit its content and the record before it")

    def check_head(self, seq: int, seal: bytes, places: Sequence[Place]) -> None:
        """Check that the journal has the records its head counts, each in its place. Raises: CorruptRecord."""
        for number, (found, _, _) in enumerate(places, 1):
            if found != number:
                raise self._corrupt(f"record {number}", f"it is not there, record {found} stands in its place")
        if len(places) < seq:
            raise self._corrupt("the journal", f"its head counts {seq} records, {len(places)} are there")
        if len(places) > seq:
            raise self._corrupt(f"record {seq + 1}", f"it stands behind the sealed head ({seq})")
        if not hmac.compare_digest(self.head_of(places) or b"", seal):
            raise self._corrupt("the head", "its seal does not fit the order, chains and seals of the records")

    # ── rows beside the journal ─────────────────────────────────────────────────────────────────────

    def sealed(self, row: Row) -> Row:
        """Return a row with its seal; without one when there is no key: a digest in a row alone proves nothing."""
        return row if self._key is None else replace(row, seal=self._mac(_row_text(row)))

    def check_row(self, row: AnswerRow | CancelRow | ClaimRow) -> None:
        """Check that a row was written by somebody who has the key. Raises: CorruptRecord naming the row."""
        if self._key is None:
            return
        if row.seal is None:
            raise self._corrupt(_row_name(row), "it carries no seal, so it was not written with this run's key")
        if not any(hmac.compare_digest(self._mac(text), row.seal) for text in _row_texts(row)):
            raise self._corrupt(_row_name(row), "its seal does not fit what it says")

    def corrupt(self, record: Sealed, reason: str) -> CorruptRecord:
        """Build the refusal of one record, by its number, kind and chain."""
        where = f" in {record.chain}" if record.chain else ""
        return self._corrupt(f"record {record.seq} ({record.kind}{where})", reason)

    def _corrupt(self, record: str, reason: str) -> CorruptRecord:
        return CorruptRecord(run_id=self._run.decode("utf-8"), record=record, reason=reason)


@lru_cache(_KNOWN_MAX)
def _of_chain(run: bytes, chain: str) -> bytes:
    """Return what the heads after all records of one chain have in common."""
    where = chain.encode("utf-8")
    return b"\0%d\0%d\0%b%b" % (len(run), len(where), run, where)


@lru_cache(_KNOWN_MAX)
def _of_kind(run: bytes, chain: str, kind: str) -> bytes:
    """Return what the seals of all records of one kind have in common within a chain."""
    where = chain.encode("utf-8")
    return b"\0%d\0%d\0%b\0%b%b" % (len(run), len(where), kind.encode("ascii"), run, where)


def _digest(message: bytes) -> bytes:
    return hashlib.sha256(message).digest()


def _row_name(row: AnswerRow | CancelRow | ClaimRow) -> str:
    match row:
        case AnswerRow():
            return f"the answer to {row.question_id[:200]}"
        case CancelRow():
            return "the request to cancel it"
        case ClaimRow():
            return f"the claim of key {row.key[:200]}"


_ROW_DOMAINS: dict[type, bytes] = {
    AnswerRow: b"milepost-answer-2\0",
    CancelRow: b"milepost-cancel-1\0",
    ClaimRow: b"milepost-claim-1\0",
}
"""A seal of one kind of row never fits another; the number grows when a field is added."""


def _row_text(row: AnswerRow | CancelRow | ClaimRow) -> bytes:
    """Return what the seal of a row covers: every other field in order, each with its kind and length."""
    pieces = [_piece(getattr(row, f.name)) for f in fields(row) if f.name != "seal"]
    return _ROW_DOMAINS[type(row)] + b"".join(pieces)


def _row_texts(row: AnswerRow | CancelRow | ClaimRow) -> list[bytes]:
    """Return what the seal of a row may cover: an answer of one person also as it was sealed before there were several.

    Such a row has none of the fields that came since, so the old text covers all that it says.
    """
    texts = [_row_text(row)]
    if isinstance(row, AnswerRow) and row.place in (0, 1) and not (row.request or row.door or row.role):
        old = (row.question_id, row.run_id, row.choice, row.by, row.at, row.note, row.ref, row.result, row.accepted)
        texts.append(b"milepost-answer-1\0" + b"".join(map(_piece, old)))
    return texts


def _piece(value: str | bytes | bool | int | None) -> bytes:
    match value:
        case None | bool():
            return b"%b;" % str(value).encode("ascii")
        case int():
            return b"int:%d;" % value
        case str():
            data, sort = value.encode("utf-8", "surrogatepass"), b"text"
        case bytes():
            data, sort = value, b"bytes"
    return b"%b:%d:%b;" % (sort, len(data), data)


def seal_key_in(environ: Mapping[str, str]) -> bytes | None:
    """Return the key of MILEPOST_SEAL_KEY, None without one. Raises: BadOption when it cannot be one."""
    text = variable(environ, "MILEPOST_SEAL_KEY")
    return checked_key(text.encode("utf-8"), "MILEPOST_SEAL_KEY") if text else None


def checked_key(key: bytes, where: str) -> bytes:
    """Return a seal key that is long enough not to be guessed from a fingerprint. Raises: BadOption."""
    if len(key) < KEY_SIZE_MIN:
        reason = f"a seal key has at least {KEY_SIZE_MIN} bytes, this one {len(key)}; it could be guessed"
        raise BadOption(where=where, reason=reason, hint=MAKE_A_KEY)
    return key


def key_name(key: bytes | None) -> str | None:
    """Return a short public name of a seal key, kept with the run to tell a missing key from a wrong one."""
    if key is None:
        return None
    return hmac.digest(key, b"milepost-key-name-1", "sha256").hex()[:8]

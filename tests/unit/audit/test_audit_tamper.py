"""Whoever is handed an audit record can tell that it is whole and unaltered, without the store it came from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from told_run import KEY

from milepost.audit.contents import end_content
from milepost.audit.files import FORMS, check_file
from milepost.audit.lines import Scribe
from milepost.errors import AuditAltered, AuditIncomplete, AuditUnproven, MilepostError

FLIPS = 60
"""Places of each file at which one bit is turned; a prime stride apart, so that every kind of line is met."""
REFUSED = (AuditAltered, AuditIncomplete)
Files = dict[tuple[str, str], bytes]


def refusal(file: Path, data: bytes, key: bytes | None = KEY) -> MilepostError:
    file.write_bytes(data)
    with pytest.raises(REFUSED) as found:
        check_file(file, key)
    return found.value


def proven_without_a_key(file: Path) -> None:
    """Prove a file as somebody who has no key. Raises: AuditUnproven, too."""
    if check_file(file, None).missing_key:
        raise AuditUnproven(file=file, reason="its key is missing")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("name", "key"), [("keyed", KEY), ("unkeyed", None)])
def test_an_honest_file_holds(files: Files, file: Path, name: str, key: bytes | None, form: str) -> None:
    """The whole of it, in each form."""
    file.write_bytes(files[name, form])
    checked = check_file(file, key)
    assert checked.missing_key is None
    assert checked.heading.proven
    assert checked.counts["answer"] == 2
    assert checked.carried == checked.counts["artifact"] > 5


@pytest.mark.parametrize("form", FORMS)
def test_any_flipped_bit_is_refused_and_its_line_named(files: Files, file: Path, form: str) -> None:
    """In sealed bytes, in what people read, in markup and style alike."""
    data = files["unkeyed", form]
    for place in range(0, len(data), len(data) // FLIPS):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 7
        if bytes(changed[place : place + 1]) in b"\n" or data[place : place + 1] == b"\n":
            continue  # two lines for one, or one for two: whichever is named first
        error = refusal(file, bytes(changed), None)
        assert error.line == data.count(b"\n", 0, place) + 1 or isinstance(error, AuditIncomplete)


def _without(lines: list[bytes], at: int) -> list[bytes]:
    return lines[:at] + lines[at + 1 :]


def _twice(lines: list[bytes], at: int) -> list[bytes]:
    return lines[: at + 1] + lines[at:]


def _swapped(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[:at], *reversed(lines[at : at + 2]), *lines[at + 2 :]]


def _cut(lines: list[bytes], at: int) -> list[bytes]:
    return lines[:at]


def _moved_to_the_end(lines: list[bytes], at: int) -> list[bytes]:
    return [*_without(lines, at), lines[at]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("attack", [_without, _twice, _swapped, _cut, _moved_to_the_end])
def test_a_line_that_is_dropped_doubled_or_moved_is_refused(
    files: Files, file: Path, form: str, attack: Callable[[list[bytes], int], list[bytes]]
) -> None:
    """Each line in turn; two equal neighbours may change places."""
    lines = files["unkeyed", form].splitlines(keepends=True)
    for at in range(0, len(lines), 1 if form == "jsonl" else 7):
        changed = attack(lines, at)
        if changed != lines:
            refusal(file, b"".join(changed), None)


@pytest.mark.parametrize("form", FORMS)
def test_a_cut_in_the_middle_of_a_line_is_a_thing_that_is_missing(files: Files, file: Path, form: str) -> None:
    """A download that broke off is not taken for tampering."""
    data = files["keyed", form]
    assert isinstance(refusal(file, data[: len(data) // 2]), AuditIncomplete)
    assert isinstance(refusal(file, data[:-1]), AuditIncomplete)


@pytest.mark.parametrize("form", FORMS)
def test_what_stands_behind_the_end_is_refused(files: Files, file: Path, form: str) -> None:
    """An addition that the run never saw: nothing is missing, so nobody is told to get the whole file."""
    data = files["keyed", form]
    for more in (data.splitlines(keepends=True)[-1], b"<p>and approved by the board</p>\n", b"approved", b"\n", b" "):
        error = refusal(file, data + more)
        assert isinstance(error, AuditAltered), more
        assert error.line == data.count(b"\n") + 1


@pytest.mark.parametrize("form", FORMS)
def test_what_is_cut_off_is_missing_and_what_replaces_it_is_altered(files: Files, file: Path, form: str) -> None:
    """Inside the last line of a page, where all that is sealed is there."""
    data = files["keyed", form]
    assert isinstance(refusal(file, data[:-3]), AuditIncomplete)
    assert isinstance(refusal(file, data[:-1] + b"x"), AuditAltered if form == "html" else AuditIncomplete)


# ── a forger who writes every proof anew ────────────────────────────────────────────────────────────


def forged(data: bytes, change: Callable[[dict[str, object]], None]) -> bytes:
    """Change lines and prove all of them again, as one would who has read this code; an emptied one is left out."""
    scribe, lines, counts = Scribe(None), [], Counter[str]()
    for text in data.decode("ascii").splitlines():
        content = json.loads(text)
        del content["line"], content["proof"]
        change(content)
        if content.get("is") == "end":
            content = dict(end_content(counts))
        if content:
            counts[str(content["is"])] += 1
            lines.append(scribe.write(content).text + "\n")
    return "".join(lines).encode("ascii")


def _says(content: dict[str, object]) -> None:
    if content.get("seq") == 3:
        content["says"] = "approved by everybody"


def _time(content: dict[str, object]) -> None:
    if content.get("seq") == 3:
        content["at"] = "2026-01-01T00:00:00.000000+00:00"


def _body(content: dict[str, object]) -> None:
    if content.get("kind") == "outcome_recorded":
        content["body"] = str(content["body"]).replace("ref-2026-10-1", "ref-2026-10-9")
        content["ref"] = "ref-2026-10-9"


def _extra(content: dict[str, object]) -> None:
    content["approved_by"] = "the board"


def _answer(content: dict[str, object]) -> None:
    if content["is"] == "answer":
        content["row"]["by"] = content["who"] = "eve@desk"  # type: ignore[index]


def _text(content: dict[str, object]) -> None:
    if "text" in content:
        content["text"] = str(content["text"]).replace("posted", "pasted")


def _other_run(content: dict[str, object]) -> None:
    if content["is"] == "audit":
        content["run_id"] = "november"


def _no_answers(content: dict[str, object]) -> None:
    if content["is"] == "answer":
        content.clear()


def _no_end_of_the_run(content: dict[str, object]) -> None:
    if (content.get("kind") == "run_ended" and content["says"] == "done") or content.get("of") == "output of the run":
        content.clear()


def _no_artifact(content: dict[str, object]) -> None:
    if content.get("of") == "output of read":
        content.clear()


@pytest.mark.parametrize("change", [_no_answers, _no_end_of_the_run, _no_artifact])
def test_what_a_forger_leaves_out_is_missed(
    files: Files, file: Path, change: Callable[[dict[str, object]], None]
) -> None:
    """An answer the run acted on, its last record, an artifact that a record points at."""
    assert forged(files["unkeyed", "jsonl"], lambda content: None) == files["unkeyed", "jsonl"]
    refusal(file, forged(files["unkeyed", "jsonl"], change), None)


@pytest.mark.parametrize("change", [_says, _time, _body, _extra, _answer, _text, _other_run])
def test_new_proofs_do_not_help_a_forger_who_cannot_seal(
    files: Files, file: Path, change: Callable[[dict[str, object]], None]
) -> None:
    """What people read is written again from what is sealed; what is sealed does not fit any more."""
    refusal(file, forged(files["unkeyed", "jsonl"], change), None)
    refusal(file, forged(files["keyed", "jsonl"], change))


def test_with_a_key_not_even_the_heading_can_be_forged(files: Files, file: Path) -> None:
    """Who exported it when, and that all was proven, is nobody else's word."""

    def by_eve(content: dict[str, object]) -> None:
        if content["is"] == "audit":
            content["exported_by"] = "eve@desk"
            content["says"] = str(content["says"]).replace("ada@desk", "eve@desk")

    error = refusal(file, forged(files["keyed", "jsonl"], by_eve))
    assert "proof" in str(error)


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


@pytest.mark.parametrize("name", ["unkeyed", "keyed"])
def test_a_line_of_any_shape_is_refused_and_breaks_nothing(files: Files, file: Path, name: str) -> None:
    """Who sends a file chooses what is in it: odd values, missing fields, other kinds; also to who has no key."""
    honest = files[name, "jsonl"].decode("ascii").splitlines()

    @given(st.integers(0, 200), st.integers(0, 20), st.booleans(), ODD)
    @settings(max_examples=150)
    def refuses(at: int, field: int, inside: bool, odd: object) -> None:
        lines = [json.loads(text) for text in honest]
        line = lines[at % len(lines)]
        chosen = line["row"] if inside and "row" in line else line
        name, before = sorted(chosen)[field % len(chosen)], json.dumps(chosen)
        if odd is None:
            del chosen[name]
        else:
            chosen[name] = odd
        assume(json.dumps(chosen) != before)
        file.write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in lines), encoding="ascii")
        with pytest.raises((*REFUSED, AuditUnproven)):
            proven_without_a_key(file)

    refuses()


@pytest.mark.parametrize("odd", [[], {}, [1]])
def test_an_answer_with_a_list_for_a_name_is_refused_by_line(files: Files, file: Path, odd: object) -> None:
    """The seals hold it back where there is a key; whoever has none must not see a bug of ours."""
    name = sorted(json.loads(next(x for x in files["unkeyed", "jsonl"].splitlines() if b'"is":"answer"' in x))["row"])
    for field in name:

        def make_odd(content: dict[str, object], field: str = field) -> None:
            if content["is"] == "answer":
                content["row"][field] = odd  # type: ignore[index]

        file.write_bytes(forged(files["unkeyed", "jsonl"], make_odd))
        with pytest.raises((*REFUSED, AuditUnproven)):
            proven_without_a_key(file)


# ── corrupt, absent, cannot tell ────────────────────────────────────────────────────────────────────


def test_without_its_key_a_sealed_file_can_be_neither_trusted_nor_refused(files: Files, file: Path) -> None:
    """That is an answer of its own."""
    file.write_bytes(files["keyed", "html"])
    missing = check_file(file, None).missing_key
    assert missing is not None
    assert "no key is given" in missing


def test_without_its_key_damage_is_damage_all_the_same(files: Files, file: Path) -> None:
    """A missing key excuses nothing that shows without it."""
    refusal(file, forged(files["keyed", "jsonl"], _says), None)
    refusal(file, forged(files["keyed", "jsonl"], _text), None)


def test_a_file_that_claims_to_be_unsealed_is_not_trusted_by_who_has_a_key(files: Files, file: Path) -> None:
    """Else a forger would only have to leave the seals out."""
    file.write_bytes(files["unkeyed", "jsonl"])
    assert check_file(file, KEY).missing_key is not None


def test_another_key_proves_nothing(files: Files, file: Path) -> None:
    """It is not the run's."""
    file.write_bytes(files["keyed", "jsonl"])
    assert "the key given is" in str(check_file(file, b"another").missing_key)


def test_a_later_format_is_not_judged(files: Files, file: Path) -> None:
    """It may mean something else by the same words."""
    file.write_bytes(files["unkeyed", "jsonl"].replace(b'"format":1', b'"format":2', 1))
    with pytest.raises(AuditUnproven, match="format 2"):
        check_file(file, None)


@pytest.mark.parametrize(
    "data", [b"", b"{}\n", b"hello\n", b'{"line":1}\n', b'{"line":\n', b"<!doctype html>\n", b'"line",\r\n']
)
def test_what_is_no_audit_record_is_refused(file: Path, data: bytes) -> None:
    """By name, not by a traceback."""
    refusal(file, data)

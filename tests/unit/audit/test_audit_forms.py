"""The three forms of an audit record: what people read in them is inert, complete and can be turned back."""

from __future__ import annotations

import csv
import json
import tracemalloc
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from told_run import HOSTILE, KEY, RUN, SECRET, exported, tell_of_approvals, told, write_file

from milepost import StepFailed, step, task
from milepost.audit.csv_form import COLUMNS, MARK, as_it_was, harmless
from milepost.audit.files import FORMS, Form, check_file
from milepost.audit.plain import plain
from milepost.stores.contract import Holder, NewRun, Store
from milepost.stores.memory import MemoryStore

Files = dict[tuple[str, str], bytes]
TAGS = {"html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "code", "pre", "dl", "dt", "dd"}
TAGS |= {"section", "table", "thead", "tr", "th", "td"}
FORMULA = tuple("=+-@\t\r＝＋－＠")


def text_of(files: Files, form: str) -> str:
    return files["keyed", form].decode("utf-8")


# ── what it tells ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "fact",
    ["ada@desk", "bob@desk", "ref-2026-10-1", "by-hand", "model-1", "queue:write", "never:used", "applied", "mp1-"],
)
def test_it_tells_who_what_and_on_whose_word(files: Files, form: str, fact: str) -> None:
    """Answers, late ones too, references, keys, versions and permissions stand in every form."""
    assert fact in text_of(files, form)


@pytest.mark.parametrize("form", FORMS)
def test_no_secret_is_in_it(files: Files, form: str) -> None:
    """Neither the provider's, which an error named, nor the key that seals it."""
    assert SECRET not in text_of(files, form)
    assert KEY.decode() not in text_of(files, form)


def test_every_line_is_json_with_what_people_read(files: Files) -> None:
    """A script needs no Milepost to read it."""
    lines = [json.loads(line) for line in text_of(files, "jsonl").splitlines()]
    assert [line["line"] for line in lines] == list(range(1, len(lines) + 1))
    assert all(line["says"] for line in lines)
    sealed = [json.loads(line["body"]) for line in lines if line["is"] == "record"]
    assert [record["at"] for record in sealed] == [line["at"] for line in lines if line["is"] == "record"]


def test_without_artifacts_each_is_listed_by_its_digest(stores: dict[str, Store], file: Path) -> None:
    """What was worked on may be nobody else's business; that it was this can be shown later."""
    write_file(exported(stores["keyed"], KEY, with_artifacts=False), FORMS["jsonl"], file)
    assert b"posted 2026-10-1" not in file.read_bytes()
    checked = check_file(file, KEY)
    assert checked.counts["artifact"] > 5
    assert checked.carried == 0


def test_a_spoilt_store_is_exported_and_says_so(stores: dict[str, Store], file: Path) -> None:
    """What cannot be trusted is written as it lies there; the file is refused by the record's name."""
    store = MemoryStore()
    store.__dict__.update(stores["unkeyed"].__dict__)
    run = store._runs[RUN]
    kept = list(run.records)
    run.records[4] = run.records[4]._replace(body=run.records[4].body.replace(b"at", b"\xff"))
    try:
        lines = list(exported(store, None))
        write_file(iter(lines), FORMS["jsonl"], file)
    finally:
        run.records[:] = kept
    assert lines[0].content["verdicts"][0]["ok"] is False
    assert "NOT everything" in lines[0].content["says"]
    with pytest.raises(Exception, match="record 5"):
        check_file(file, None)


def test_approvals_are_told_with_their_terms_and_all_who_gave_them(file: Path) -> None:
    """How many of whom had to allow what; who did, in which role, by which door; who came too late."""
    write_file(exported(tell_of_approvals(), None), FORMS["html"], file)
    assert check_file(file, None).counts["answer"] == 3
    text = Page(file.read_text(encoding="utf-8")).text
    for fact in ("approvals 2; of ada, cid, finance; not agent:paid@", "pay 100", "ada agrees", "bob agreesanswer 2"):
        assert fact in text
    assert "door console, role finance" in text
    assert "cid agreescame too late" in text
    assert "allowed by q-" in text


def test_a_run_that_is_not_done_is_told_as_far_as_it_is(file: Path) -> None:
    """Asked for in the middle: what is recorded up to there, and that it has not ended."""
    store = MemoryStore()
    with pytest.raises(StepFailed):
        told.options(store=store).run(RUN, "2026-10")
    write_file(exported(store, None), FORMS["html"], file)
    assert check_file(file, None).heading.proven
    assert "last send, not known to be applied" in file.read_text(encoding="utf-8")


def test_a_run_that_died_before_its_first_record_is_told_too(file: Path) -> None:
    """Nothing was done, and nothing is claimed."""
    store = MemoryStore()
    store.create_run(NewRun(RUN, "told", RUN, None, "2026-11-02T08:00:00.000000+00:00", Holder("desk", "boot", 7, "")))
    write_file(exported(store, None), FORMS["html"], file)
    assert check_file(file, None).counts["record"] == 0


# ── HTML ────────────────────────────────────────────────────────────────────────────────────────────


class Page(HTMLParser):
    """Collects the tags, the attributes and the visible text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_has_no_script_and_nothing_from_elsewhere(files: Files) -> None:
    """Model text is text: no tag, no attribute, no link of its own comes out."""
    page = Page(text_of(files, "html"))
    assert page.tags <= TAGS
    assert page.attributes <= {"lang", "charset", "http-equiv", "content", "name", "class", "data-line"}
    assert "<script>alert(1)</script>" in page.text
    assert "\u202e" not in page.text
    assert "\x1b" not in text_of(files, "html")
    assert r"\u202e" in page.text


def test_the_page_tells_deaths_and_stops_apart(files: Files) -> None:
    """How often it died is a fact people ask for."""
    page = Page(text_of(files, "html"))
    assert "2, 0 of them after a death" in page.text
    assert "Proven when it was exported" in page.text


# ── CSV ─────────────────────────────────────────────────────────────────────────────────────────────


def test_no_cell_is_a_formula_however_a_spreadsheet_cuts_it(files: Files) -> None:
    """A semicolon or a tab is the end of a cell somewhere."""
    csv.field_size_limit(10_000_000)
    rows = list(csv.reader(StringIO(text_of(files, "csv").removeprefix(MARK))))
    assert rows[0] == list(COLUMNS)
    cut = [piece for row in rows for cell in row for mark in ",;\t|" for piece in cell.split(mark)]
    assert [piece for piece in cut if piece.startswith(FORMULA)] == []
    assert any("=1+1;'=cmd" in cell for row in rows for cell in row)


@given(st.text(alphabet=st.sampled_from("=+-@'\t\r,;|ab＝"), max_size=12) | st.text(max_size=20))
def test_what_keeps_a_formula_away_comes_off_again(cell: str) -> None:
    """Reversible, so that the file can be checked."""
    safe = harmless(cell)
    assert as_it_was(safe) == cell
    assert not safe.startswith(FORMULA)


@given(st.text(max_size=30))
def test_plain_text_is_inert_and_stays_so(text: str) -> None:
    """The same on every machine: nothing depends on which characters this Python knows."""
    shown = plain(text)
    assert plain(shown) == shown
    assert shown.encode("utf-8").decode("utf-8") == shown
    assert not set(shown) & set("\x00\x1b\n\r\x7f\x85\u202e\u2066\u200b\ufeff")


def test_the_hostile_text_is_what_was_recorded() -> None:
    """The tests above look for what it does."""
    assert {"=", "\x1b", "\u202e", "<", "'", "\t"} <= set(HOSTILE)


# ── size ────────────────────────────────────────────────────────────────────────────────────────────


@step
def one(number: int) -> str:
    return f"{number} " * 200


@task
def many(count: int) -> int:
    return len([one(number) for number in range(count)])


@pytest.mark.parametrize("form", FORMS)
def test_a_long_run_takes_little_memory_to_write_and_to_check(file: Path, form: str) -> None:
    """A page of records at a time; what grows is the list of digests already named."""
    peaks = [_peak(count, FORMS[form], file) for count in (30, 230)]
    assert peaks[1] - peaks[0] < 200 * 1500


def _peak(count: int, form: Form, file: Path) -> int:
    store = MemoryStore()
    many.options(store=store).run(RUN, count)
    tracemalloc.start()
    try:
        write_file(exported(store, None, verified=False), form, file)
        check_file(file, None)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

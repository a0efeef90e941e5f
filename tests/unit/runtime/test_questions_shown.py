"""What a person is told of changed sources: which, whose, and what each line or row said."""

from __future__ import annotations

from pathlib import Path

import pytest
from desk import Desk

from milepost import step, task
from milepost.errors import SourceChanged


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    path = tmp_path / "orders.csv"
    path.write_text("PO-1,10\nPO-2,20\n")
    return path


def test_each_changed_source_is_told_with_who_used_and_who_wrote_it(desk: Desk, orders: Path, tmp_path: Path) -> None:
    """To answer keep or redo, a person must know what the line said and whose it was."""
    report = tmp_path / "report.txt"

    @step
    def write(path: Path) -> Path:
        report.write_text("total 30\n")
        return report

    @step
    def check(path: Path) -> str:
        return path.read_text()

    @task
    def two_sources() -> str:
        return check(write(orders))

    desk.dies_at_its_end(two_sources)
    orders.write_text("PO-1,10\nPO-2,21\n")
    report.write_text("total 31\n")
    with pytest.raises(SourceChanged) as caught:
        desk.resume(two_sources)
    told = str(caught.value)
    assert "orders.csv changed since write used it: expected" in told
    assert '(line 2: "PO-2,20" → "PO-2,21"); ' in told
    assert "report.txt changed since write wrote and check used it: expected" in told
    assert '(line 1: "total 30" → "total 31").' in told
    assert [(e["written_by"], e["used_by"]) for e in desk.evidence()] == [(None, ["write"]), ("write", ["check"])]


def test_many_changed_sources_are_counted_in_the_sentence(desk: Desk, tmp_path: Path) -> None:
    """The sentence stays short; the evidence has all of them."""
    paths = [tmp_path / f"{number}.txt" for number in range(5)]
    for path in paths:
        path.write_text("a\n")

    @step
    def read_all(paths: list[Path]) -> int:
        return len(paths)

    @task
    def reads_many() -> int:
        return read_all(paths)

    desk.dies_at_its_end(reads_many)
    for path in paths:
        path.write_text("b\n")
    with pytest.raises(SourceChanged, match="; and 2 more"):
        desk.resume(reads_many)
    assert len(desk.evidence()) == 5


def test_a_sealed_run_keeps_no_line_of_what_it_read(desk: Desk, orders: Path) -> None:
    """Who can read the store but has not the key learns nothing of the files."""
    desk.seal_key = b"a key that is long enough"

    @step
    def read_orders(path: Path) -> int:
        return len(path.read_text())

    @task
    def sealed() -> int:
        return read_orders(orders)

    desk.dies_at_its_end(sealed)
    orders.write_text("PO-1,10\nPO-2,21\n")
    with pytest.raises(SourceChanged, match=r"\(line 2 changed\)"):
        desk.resume(sealed)


def test_a_file_of_many_lines_among_the_inputs_is_kept_outside_the_row(desk: Desk, tmp_path: Path) -> None:
    """Lines and their texts together may be more than a row holds."""
    path = tmp_path / "long.txt"
    path.write_text("".join(f"line {number} of the file\n" for number in range(1900)))

    @task
    def reads_long(path: Path) -> int:
        return len(path.read_text())

    desk.dies_at_its_end(reads_long, path)
    path.write_text(path.read_text().replace("line 7 of", "line 7 off"))
    with pytest.raises(SourceChanged, match='line 8: "line 7 of the file" → "line 7 off the file"'):
        desk.resume(reads_long)

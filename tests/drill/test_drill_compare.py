"""What counts as a difference, which fields are left out, which points there are: pure, so tried here one by one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from milepost.drill.changing import change
from milepost.drill.compare import changes, fields, repeated, skipped, unstable, unsteady_calls
from milepost.drill.order import Send
from milepost.drill.points import Point, last, passed, sample
from milepost.drill.standing import Standing
from milepost.errors import MisuseError


def standing(**given: object) -> Standing:
    return Standing(**{"result": None, "steps": {}, "effects": {}, "counts": {}, **given})  # type: ignore[arg-type]


def of_step(name: str, output: object) -> dict[str, object]:
    return {name: {"output": output, "checks": [], "files": {}}}


@pytest.mark.parametrize(
    ("ignore", "is_left_out"),
    [
        ((), False),
        (("extract$.note",), True),
        (("extract$",), True),
        (("ex*$.note",), True),
        (("extract$.not",), False),
        (("$.note",), False),
        (("match$.note",), False),
    ],
)
def test_a_field_of_a_step_is_left_out_by_the_steps_name(ignore: tuple[str, ...], is_left_out: bool) -> None:
    """Model text differs each time; the rest of the same output must not."""
    then = standing(steps=of_step("outer/extract[INV-7]#2", {"note": "a", "sum": 1}))
    now = standing(steps=of_step("outer/extract[INV-7]#2", {"note": "b", "sum": 1}))
    assert (changes(then, now, fields(ignore)) == []) is is_left_out


def test_items_of_lists_are_left_out_with_a_star() -> None:
    then, now = (standing(result={"rows": [{"a": 1, "t": t}, {"a": 2, "t": t}]}) for t in ("x", "y"))
    assert len(changes(then, now, ())) == 2
    assert changes(then, now, fields(["$.rows[*].t"])) == []
    assert [f"{f.section}{f.path}" for f in unstable(then, now, ())] == ["result$.rows[*].t"]


def test_a_difference_names_its_place_and_both_sides() -> None:
    then, now = standing(counts={"model calls": 2}), standing(counts={"model calls": 3})
    assert changes(then, now, ()) == ['counts["model calls"]: 2 → 3']


def test_an_ignored_field_must_be_one() -> None:
    with pytest.raises(MisuseError, match="expected"):
        fields(["summary"])


def test_what_did_not_happen_is_skipped() -> None:
    then = standing(steps=of_step("match", 1), effects={"post": {}})
    assert skipped(then, standing(steps=of_step("match", 1))) == ["post"]


def test_what_the_outside_has_more_of_is_repeated() -> None:
    then, now = standing(world={"mails": ["a"], "queue": []}), standing(world={"mails": ["a", "a"], "queue": []})
    assert repeated(then, now, [], {}) == ["the outside has 1 more than undisturbed"]
    assert repeated(then, then, [], {}) == []


@pytest.mark.parametrize(("looked_up", "count"), [(True, 1), (False, 0)])
def test_a_second_accepted_send_counts_only_where_a_lookup_should_have_known(looked_up: bool, count: int) -> None:
    """A provider that honours keys is sent the same key again on purpose."""
    sends = [Send("post", "k", "returned", looked_up)] * 2
    assert len(repeated(standing(), standing(), sends, {"post": 1})) == count


def test_chance_is_only_blamed_on_calls_before_which_everything_is_equal() -> None:
    """What follows an output that differs may come from it, and a resume gets that output back."""
    one = standing(steps=of_step("draw", 1), inputs={"draw": {"n": 1}, "use": {"n": 1}})
    other = standing(steps=of_step("draw", 2), inputs={"draw": {"n": 1}, "use": {"n": 2}})
    assert unsteady_calls(one, other) == []
    (said,) = unsteady_calls(one, standing(steps=of_step("draw", 1), inputs={"draw": {"n": 1}, "use": {"n": 2}}))
    assert said == "use gets other inputs each time: $.n: 1 → 2"


# ── points ──


LINES = ["send before", "send durable", "append:run_ended before", "send before"]


def test_points_are_numbered_by_kind_and_read_back() -> None:
    found = passed(LINES)
    assert [str(p) for p in found] == ["send:before:1", "send:durable:1", "append:run_ended:before:1", "send:before:2"]
    assert found[3].place == "send before 2"
    assert last(found, "send", "before") == Point("send", "before", 2)


def test_a_sample_is_the_same_for_the_same_seed_and_in_order() -> None:
    things = list(range(100))
    drawn = sample(things, 7, seed=3)
    assert drawn == sample(things, 7, seed=3) == sorted(drawn)
    assert drawn != sample(things, 7, seed=4)
    assert sample(things, None, seed=3) == sample(things, 200, seed=3) == things


# ── changing sources ──


def test_a_file_outside_the_world_is_never_changed(tmp_path: Path) -> None:
    """A drill must not be able to damage what it was not given."""
    world, mine = tmp_path / "world", tmp_path / "mine.txt"
    world.mkdir()
    mine.write_text("mine", encoding="utf-8")
    (world / "link.txt").symlink_to(mine)
    for path in (str(mine), "../mine.txt", "link.txt"):
        assert "outside the drill's world" in change({"kind": "file", "path": path}, world)
    assert mine.read_text(encoding="utf-8") == "mine"


def test_a_query_answers_otherwise_afterwards(tmp_path: Path) -> None:
    """Also where the first columns are not part of the answer, or take no such value."""
    query = "select total from orders where state = 'open'"
    with closing(sqlite3.connect(tmp_path / "orders.sqlite")) as db, db:
        db.execute("create table orders (id integer primary key, state text, total integer) strict")
        db.execute("insert into orders values (1, 'open', 7)")
    assert change({"kind": "sql", "database": "orders.sqlite", "query": query, "parameters": []}, tmp_path) == ""
    with closing(sqlite3.connect(tmp_path / "orders.sqlite")) as db:
        assert db.execute(query).fetchall() != [(7,)]


def test_what_cannot_be_changed_says_why(tmp_path: Path) -> None:
    assert "kind http" in change({"kind": "http", "url": "http://example.com"}, tmp_path)
    assert "nothing at" in change({"kind": "file", "path": "gone.txt"}, tmp_path)

"""A path is taken apart the same everywhere, whatever a key= holds."""

from __future__ import annotations

import pytest

from milepost.errors import BadName
from milepost.protocol.keys import checked_item_key, name_in
from milepost.records.naming import body_of, last_part, parts_of

PARTS = [
    "a",
    "match#2",
    "a[x]",
    "post[https://x.org/y?z=1]",
    "o[u/v]#3",
    "a[b[c]d]",
    "a[x]y]",
    "look[~3f9a]#2",
    "a[x]#2]",
]


@pytest.mark.parametrize("outer", ["", *PARTS])
@pytest.mark.parametrize("part", PARTS)
def test_a_path_comes_apart_as_it_was_put_together(outer: str, part: str) -> None:
    """A key that is a URL names no body: its record stands in the chain of the body that called it."""
    path = f"{outer}/{part}" if outer else part
    assert (body_of(path), last_part(path)) == (outer, part)
    assert parts_of(path) == [*([outer] if outer else []), part]
    assert name_in(path) == part.partition("[")[0].partition("#")[0]


@pytest.mark.parametrize("key", ["x]/b", "x]#2/b"])
def test_a_key_that_would_end_early_is_refused(key: str) -> None:
    """Two calls could come to one path otherwise."""
    with pytest.raises(BadName, match="where a path would go on"):
        checked_item_key("key= of post", key)


@pytest.mark.parametrize("key", ["https://x.org/a", "../b", "a[1]", "x]", "a#2", "C:/f]"])
def test_a_key_may_hold_what_builds_paths(key: str) -> None:
    """Invoice files, URLs and indexes are what people have for keys."""
    if key.startswith("."):
        with pytest.raises(BadName):
            checked_item_key("key= of post", key)
    else:
        assert checked_item_key("key= of post", key) == key

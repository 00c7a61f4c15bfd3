"""The text of a block: what goes in comes out, in order, in parts that are not too large."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.exchange.block import MAX_BYTES, OpenBlock, read_block
from multilang.exchange.routes import Route
from multilang.protocol import RemoteProtocolError
from multilang.protocol.codec import dumps, encode_values, loads

VALUES = st.lists(
    st.one_of(st.text(st.characters(exclude_categories=["Cs"])), st.integers(-(2**63), 2**63 - 1), st.booleans(), st.none(),
              st.floats(allow_nan=False, allow_infinity=False), st.lists(st.text("'\"\\a")), st.dictionaries(st.text("'\"b"), st.integers(0, 9))),
    max_size=3,
)  # fmt: skip
ROUTES = [Route(name, -1, [], False, False) for name in ("default", 'it\'s "one"', "b")]


@given(st.lists(st.tuples(st.integers(0, 2), VALUES), min_size=1, max_size=40), st.integers(1, 50))
def test_tuples_come_out_as_they_went_in(tuples: list[tuple[int, list[Any]]], most: int) -> None:
    block = OpenBlock(7)
    for index, values in tuples:
        if block.route is not ROUTES[index]:
            block.turn(ROUTES[index])
        block.append(encode_values(values))
    parts = block.take(most)
    found = []
    for count, text in parts:
        assert count <= most
        sent = loads(dumps([count, text]))
        found += [(stream, values) for stream, rows in read_block(sent) for values in rows]
    assert found == [(loads(ROUTES[index].name), values) for index, values in tuples]
    assert len(parts) == -(-len(tuples) // most)
    assert block.take(most) == []


def test_a_block_is_closed_at_a_size_unless_one_tuple_alone_is_larger() -> None:
    block = OpenBlock(7)
    block.turn(ROUTES[0])
    sizes = [10, MAX_BYTES * 2, 10, *[MAX_BYTES // 4] * 9]
    for size in sizes:
        block.append(encode_values(["x" * size]))
    parts = block.take(1000)
    assert [count for count, _ in parts] == [1, 1, 4, 3, 3]
    assert [len(values[0]) for part in parts for _, rows in read_block(list(part)) for values in rows] == sizes


@pytest.mark.parametrize(
    "values", [[], [1], [2, '[["default",[["a"]]]]'], [1, ""], [1, "["], [1, 7], [None, None], [1, "[[1]]"], [1, "{}"]]
)
def test_what_is_no_block_is_refused(values: list[Any]) -> None:
    with pytest.raises(RemoteProtocolError, match="a block of tuples can't be read"):
        read_block(values)

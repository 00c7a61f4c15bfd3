"""A row of an RDD that names its values gives each to the field of its name, wherever it stands. There is no Spark here."""

from __future__ import annotations

from collections import namedtuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row

from multilang.errors import SparkJobError
from spark_bridge import ConnectorError, ListSource
from spark_bridge.job.sources import SourceReader
from spark_bridge.sources.blocks import RowText

FIELDS = ("customer", "amount", "at")
ROWS = {"Row": lambda row: Row(**row), "named tuple": lambda row: namedtuple("Given", row)(**row)}  # noqa: PYI024


def ways(row):
    """Return the values that each way into a topology makes of a row."""
    return [
        [values for _, values, _, _ in SourceReader("orders", FIELDS, None).read(0, [row])],
        [RowText(FIELDS, None).values(row)],
        [list(values) for values in ListSource([[row]], FIELDS).read(0, 0, 1)],
    ]


@given(st.permutations([*FIELDS, "more"]), st.sampled_from(sorted(ROWS)))
def test_values_go_to_the_fields_of_their_names(names: list[str], kind: str) -> None:
    row = ROWS[kind]({name: f"its {name}" for name in names})
    assert ways(row) == [[[f"its {name}" for name in FIELDS]]] * 3


@pytest.mark.parametrize("kind", ROWS)
def test_other_names_are_taken_by_position_unless_a_field_stands_elsewhere(kind: str) -> None:
    assert ways(ROWS[kind]({"who": "ann", "amount": 2, "c": "x"})) == [[["ann", 2, "x"]]] * 3
    row = ROWS[kind]({"amount": 2, "who": "ann", "at": "x"})
    with pytest.raises(ConnectorError, match="'amount' stands elsewhere, and 'customer' is not there"):
        RowText(FIELDS, None).values(row)
    with pytest.raises(
        SparkJobError, match=r"row 0 of partition 3 of the source of 'orders': .*'customer' is not there"
    ):
        list(SourceReader("orders", FIELDS, None).read(3, [row]))


def test_a_row_without_names_is_taken_by_position() -> None:
    assert ways(Row("ann", 2, "x")) == ways(("ann", 2, "x")) == [[["ann", 2, "x"]]] * 3

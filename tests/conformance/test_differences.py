"""A difference of values is blamed on the case of its kind, or on none."""

from __future__ import annotations

from typing import Any

import pytest

from multilang.conformance.cases import all_cases
from multilang.conformance.differences import case_of_difference

BOOLEANS, MAPS, NUMBERS = "common/json/10", "common/json/12", "common/numbers/5"


@pytest.mark.parametrize(
    ("received", "expected", "path"),
    [
        (["7", ["1.5"]], [7, [1.5]], NUMBERS),
        ([7], ["7"], NUMBERS),
        ({"a": [1, 0]}, {"a": [True, False]}, BOOLEANS),
        (["{}", [[]]], [{}, [{}]], MAPS),
        ([[1, 2]], [[[1], 2]], MAPS),  # a list within a list is one with it
        ([None, 1], [False, 1], BOOLEANS),
        (["7", 1], [7, True], None),  # two kinds
        ([1, 2], [2, 1], None),
        (["a"], ["b"], None),
        ([1], [1, 2], None),
        ({"A": 1}, {"a": 1}, None),
        ([True], [1], None),
        ([1.0], [1], None),
    ],
)
def test_a_difference_has_the_case_of_its_kind(received: Any, expected: Any, path: str | None) -> None:
    assert case_of_difference(received, expected) == path


@pytest.mark.parametrize(("path", "word"), [(BOOLEANS, "true"), (MAPS, "maps"), (NUMBERS, "number")])
def test_the_cases_are_those_that_are_meant(path: str, word: str) -> None:
    [case] = [case for case in all_cases() if case.path == path]
    assert word in case.title

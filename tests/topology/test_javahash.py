"""java_hash against Storm's own classes.

``java_hashes.tsv`` was made on JDK 17 from what json-smart as shaded in Storm 2.8.3 parses:
``Arrays.deepHashCode(values.toArray())``, a tab, the values' JSON.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.protocol.codec import dumps, loads
from multilang.topology.javahash import java_hash, list_hash, task_index

LINES = Path(__file__).with_name("java_hashes.tsv").read_text(encoding="utf-8").splitlines()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)  # fmt: skip


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5], 36),
        (["a"], 128),
        (["hello"], 99162353),
        (["1:-5"], 1516976),
        ([True], 1262),
        ([1.5], 1073217567),
        ([None], 31),
        (["a", 5], 3973),
    ],
)
def test_a_list_hashes_as_storm_was_seen_to_hash_it(values, expected):
    assert list_hash(values) == expected


def test_every_value_that_storms_own_classes_hashed_hashes_the_same_here():
    wrong = []
    for line in LINES:
        expected, text = line.split("\t")
        got = list_hash(loads(text))
        if got != int(expected):
            wrong.append((text, int(expected), got))
    assert len(LINES) > 300
    assert not wrong


@pytest.mark.parametrize(
    ("value", "expected", "java"),
    [
        (2**31 - 1, 2147483647, "Integer"),
        (2**31, -2147483648, "Long"),
        (-(2**31), -2147483648, "Integer"),
        (-(2**31) - 1, -2147483648, "Long"),
        (-5, -5, "Integer, where Long has 4"),
        (2**63 - 1, -2147483648, "Long"),
        (-(2**63), -2147483648, "Long"),
        (2**63, -2147483648, "BigInteger"),
        (-(2**63) - 1, 2147483647, "BigInteger"),
        (123456789012345678901234567890, 1915528825, "BigInteger"),
    ],
)
def test_an_integer_hashes_as_the_java_class_that_its_size_gives(value, expected, java):
    assert java_hash(value) == expected, java
    assert list_hash([value, "a"]) % 2**32 == ((31 + expected) * 31 + 97) % 2**32


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.1, -1507852285),
        (0.30000000000000004, 691387300),  # 19 letters: a BigDecimal
        (-0.30000000000000004, -691387266),
        (1e16, 1956725625),
        (123456789.12345679, 367199297),  # 18 letters: a Double
    ],
)
def test_a_float_hashes_as_double_up_to_18_letters_and_as_big_decimal_beyond(value, expected):
    assert java_hash(value) == expected


def test_negative_zero_is_not_zero_as_in_java():
    assert java_hash(-0.0) == -2147483648
    assert java_hash(0.0) == 0


def test_what_python_takes_for_equal_hashes_apart_as_in_java():
    assert [java_hash(value) for value in (1, 1.0, True)] == [1, 1072693248, 1231]


def test_a_tuple_hashes_as_the_list_it_becomes_on_the_wire():
    assert java_hash(("a", (1, 2))) == java_hash(["a", [1, 2]])


def test_a_value_that_json_does_not_have_is_refused_by_name():
    with pytest.raises(TypeError, match=r"\{1\} is a set, which JSON does not have"):
        java_hash({1})


@given(JSON)
def test_a_hash_is_a_signed_32_bit_integer(value):
    assert -(2**31) <= java_hash(value) < 2**31


@given(JSON)
def test_a_hash_survives_the_wire(value):
    assert java_hash(loads(dumps(value))) == java_hash(value)


@given(st.lists(JSON, max_size=3), st.integers(1, 50))
def test_a_task_index_is_one_of_the_tasks(values, n):
    assert 0 <= task_index(values, n) < n


@given(st.dictionaries(st.text(max_size=5), st.integers(), max_size=5))
def test_the_order_of_an_objects_keys_does_not_matter(mapping):
    assert java_hash(dict(reversed(mapping.items()))) == java_hash(mapping)

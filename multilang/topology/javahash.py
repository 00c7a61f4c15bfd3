"""Java's ``hashCode`` of the values that Storm makes of a component's JSON.

Storm chooses a tuple's task in a fields grouping by ``Math.floorMod(Arrays.deepHashCode(values), tasks)`` (its
``TupleUtils``). A value's hash depends on the class that its JSON text becomes in the worker (json-smart, Storm 2.6 and
later):

==============================================  ==============  =======================================
JSON                                            Java            hash
==============================================  ==============  =======================================
``null``                                        ``null``        0
``true``, ``false``                             ``Boolean``     1231, 1237
an integer of 32 bits                           ``Integer``     itself
an integer of 64 bits                           ``Long``        its upper half xor its lower half
an integer beyond                               ``BigInteger``  31-based over 32-bit words, times the sign
a number with point or exponent, <= 18 letters  ``Double``      its IEEE bits as a ``Long``'s
the same, longer                                ``BigDecimal``  31 * its digits' ``BigInteger`` + its scale
a string                                        ``String``      31-based over UTF-16 units
an array                                        ``JSONArray``   31-based over its items, from 1
an object                                       ``JSONObject``  sum of (hash of key xor hash of value)
==============================================  ==============  =======================================

All hashes wrap at 32 bits. A number's text is the one that our codec writes.
"""

from __future__ import annotations

from functools import lru_cache
from struct import pack

from multilang.protocol.codec import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_WORD = 0xFFFFFFFF
_MIN_LONG, _MAX_LONG = -0x8000_0000_0000_0000, 0x7FFF_FFFF_FFFF_FFFF
_SHORT = 100  # letters of a text whose hash is remembered
_LONGEST_DOUBLE = 18  # json-smart parses a longer text to a BigDecimal, so that no digit is lost


def java_hash(value: Any) -> int:
    """Return the hash of ``value`` in a Storm worker, a signed 32-bit integer.

    The value is one that JSON has: None, bool, int, float, str, list or tuple, dict with string keys, nested.

    Raises:
        TypeError: JSON has no such value.
    """
    if isinstance(value, str):
        return _string_hash(value)
    if value is None:
        return 0
    if value is True:
        return 1231
    if value is False:
        return 1237
    if isinstance(value, int):
        return _int_hash(value)
    if isinstance(value, float):
        return _float_hash(value)
    if isinstance(value, list | tuple):
        return list_hash(value)
    if isinstance(value, dict):
        return _dict_hash(value)
    raise TypeError(f"{value!r} is a {type(value).__name__}, which JSON does not have: it has no hash in Storm")


def list_hash(values: Iterable[Any]) -> int:
    """Return the hash of a list, as ``java.util.List.hashCode``: from 1, times 31 plus each item's hash."""
    total = 1
    for value in values:
        # ids are such integers, and a call would cost more than this
        if type(value) is int and _MIN_LONG <= value <= _MAX_LONG:
            small = -0x8000_0000 <= value <= 0x7FFF_FFFF
            total = (31 * total + (value if small else value ^ value >> 32)) & _WORD
        else:
            total = (31 * total + java_hash(value)) & _WORD
    return _signed(total)


def task_index(values: Iterable[Any], n: int) -> int:
    """Return the index of the task, among ``n`` sorted by id, that a fields grouping on ``values`` chooses."""
    return list_hash(values) % n


def _signed(word: int) -> int:
    return word - 0x1_0000_0000 if word & 0x8000_0000 else word


def _string_hash(text: str) -> int:
    return _remembered_hash(text) if len(text) <= _SHORT else _text_hash(text)


def _text_hash(text: str) -> int:
    total = 0
    if text.isascii():
        for unit in text.encode():
            total = 31 * total + unit & _WORD
        return _signed(total)
    units = text.encode("utf-16-le", "surrogatepass")
    for low, high in zip(units[::2], units[1::2], strict=True):
        total = 31 * total + (high << 8 | low) & _WORD
    return _signed(total)


# Keys are repeated (words, users, request ids), and hashing one letter costs as much as the look-up.
_remembered_hash = lru_cache(maxsize=4096)(_text_hash)


def _int_hash(value: int) -> int:
    if -0x8000_0000 <= value <= 0x7FFF_FFFF:
        return int(value)
    if _MIN_LONG <= value <= _MAX_LONG:
        return _long_hash(value)
    return _big_hash(value)


def _long_hash(bits: int) -> int:
    return _signed((bits ^ bits >> 32) & _WORD)


def _big_hash(value: int) -> int:
    total = 0
    magnitude = abs(value)
    for shift in range(magnitude.bit_length() // 32 * 32, -1, -32):
        total = 31 * total + (magnitude >> shift & _WORD) & _WORD
    return _signed((total if value >= 0 else -total) & _WORD)


def _float_hash(value: float) -> int:
    text = dumps(value)
    if len(text) > _LONGEST_DOUBLE:
        return _decimal_hash(text)
    return _long_hash(int.from_bytes(pack(">d", value), "big"))


def _decimal_hash(text: str) -> int:
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    scale = len(fraction) - int(exponent or 0)
    return _signed(31 * _big_hash(int(whole + fraction)) + scale & _WORD)


def _dict_hash(mapping: Mapping[Any, Any]) -> int:
    return _signed(sum(java_hash(key) ^ java_hash(value) for key, value in mapping.items()) & _WORD)

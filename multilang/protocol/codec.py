"""JSON as it travels between a component and Storm: ujson, with checks around it.

The types of outgoing values are checked here, because ujson alone accepts values that do not arrive unchanged: NaN,
integers beyond 64 bits (they halt a worker up to Storm 2.5), ``Decimal`` (becomes a float), keys that are not strings,
nesting deeper than Storm's parser accepts. The flags are passed by position: as keywords they cost 300 ns more per
call.

Two things that ujson writes are valid JSON, but json-smart, Storm's parser, changes them, so that they are written
differently:

- U+007F is written as an escape: in a string with any escape, json-smart drops the plain character.
- ``1.2345678901234568e+16`` is written as ``12345678901234568.0``: json-smart reads so long a number as a BigDecimal,
and prints it as an integer when it has as many decimals as its exponent. ujson writes at most 16 decimals, and no
exponent below 16, so that only the exponent 16 is affected.
"""

from __future__ import annotations

from itertools import chain

import ujson

from multilang.protocol.errors import UnserializableValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Sequence
    from typing import Any

MAX_DEPTH = 300  # Storm's json-smart refuses more than 400; the message's own nesting needs some, the rest is a reserve
_LEVELS = 8  # of lists in lists that are looked at a level at a time
MIN_INT = -(2**63)
MAX_INT = 2**63 - 1

FREE: set[type] = {str, float, bool, type(None)}  # ujson itself refuses NaN and infinities in these
SCALARS = FREE | {int}
_SURE: set[type] = {
    bool,
    type(None),
}  # all values of these can be sent, also the subclasses of str that send_as_text was given

loads = ujson.loads
dumps_by_position = ujson.dumps


def send_as_text(kind: type[str]) -> type[str]:
    """Send a subclass of str as its plain text, without checking it; its instances must be ASCII."""
    _SURE.add(kind)
    FREE.add(kind)
    SCALARS.add(kind)
    return kind


def dumps(value: object) -> str:
    """Return ``value`` as JSON text on one line, escaping only what must be escaped.

    A lone surrogate stays as it is.

    Raises:
        OverflowError, TypeError, ValueError: The value is NaN, infinite, or something that JSON does not have.
    """
    text = dumps_by_position(value, False, False, False, False, 0, False)
    # A search for one character is three times as fast as one for four.
    if "\x7f" in text or ("+" in text and "e+16" in text):
        return _as_storm_keeps_it(text)
    return text


def encode_values(values: Sequence[Any]) -> str:
    """Return the JSON array of a tuple's values.

    Raises:
        UnserializableValue: A value would not arrive as it is. The error names its position.
    """
    kind = type(values)
    if kind is not list and kind is not tuple:
        _check(values)
        return dumps(values)
    # Letters and digits need no escape, and writing them here costs less than calling the encoder.
    row = ""
    for value in values:
        kind = type(value)
        if kind is str and value.isalnum():
            row += f'"{value}",'
        elif kind is int and MIN_INT <= value <= MAX_INT:
            row += f"{value},"
        else:
            break
    else:
        return f"[{row[:-1]}]"
    if SCALARS.issuperset(map(type, values)):
        try:
            for value in values:
                if type(value) is int and not MIN_INT <= value <= MAX_INT:
                    raise OverflowError
            text = dumps_by_position(values, False, False, False, False, 0, False)
            if not text.isascii():
                text.encode()  # a lone surrogate has no UTF-8 form; Storm would make it a "?"
            if "\x7f" in text or ("+" in text and "e+16" in text):
                return _as_storm_keeps_it(text)
            return text
        except (OverflowError, ValueError):
            pass  # the error with the position is raised below
    elif (nested := _encode_nested(values)) is not None:
        return nested
    _check(values)
    return dumps(values)


def _encode_nested(values: Sequence[Any]) -> str | None:
    """Return the JSON of scalars and of lists of these, a few levels deep, which are looked at a level at a time.

    None: something in it must be looked at by itself.
    """
    level: list[Any] = list(values)
    for _ in range(_LEVELS):
        lists = [value for value in level if type(value) is list]
        if len(lists) < len(level):
            scalars = [value for value in level if type(value) is not list]
            if not SCALARS.issuperset(map(type, scalars)):
                return None
            numbers = [value for value in scalars if type(value) is int]
            if numbers and not (min(numbers) >= MIN_INT and max(numbers) <= MAX_INT):
                return None
        if not lists:
            try:
                text = dumps(values)
                if not text.isascii():
                    text.encode()
            except (OverflowError, ValueError):
                return None  # the error is raised with its position
            return text
        level = list(chain.from_iterable(lists))
    return None


def encode_rows(rows: Sequence[Sequence[Any]], width: int, start: str, end: str) -> str | None:
    """Return the messages of many tuples, encoded all at once; None if their values must be looked at one by one.

    Args:
        rows: The values of each tuple.
        width: The number of values that each must have.
        start: What comes before a tuple's values, with the bracket that opens them.
        end: What comes after them, with the bracket that closes them.
    """
    if width < 1 or set(map(type, rows)) != {list} or set(map(len, rows)) != {width}:
        return None
    if not FREE.issuperset(map(type, chain.from_iterable(rows))):
        return None
    try:
        text = dumps(rows)
        if not text.isascii():
            text.encode()
    except (OverflowError, ValueError):
        return None
    # Rows are separated by "],[". If that stands nowhere else, a single replacement makes every message.
    if text.count("],[") != len(rows) - 1:
        return None
    return start + text[2:-2].replace("],[", end + start) + end


def normalize(values: Sequence[Any]) -> list[Any]:
    """Return the values as a receiver would get them: refuse the same ones, copy containers, turn tuples into lists.

    Every emit in a process without a wire calls it, so what most tuples consist of comes first.
    """
    kind = type(values)
    if kind is list or kind is tuple:
        for value in values:
            kind = type(value)
            if kind is str:
                if value.isascii():
                    continue
            elif kind is int:
                if MIN_INT <= value <= MAX_INT:
                    continue
            elif kind in _SURE or (kind is float and value - value == 0.0):
                continue
            break
        else:
            return [*values]
        if SCALARS.issuperset(map(type, values)):
            _check(values)
            return [*values]
    return loads(encode_values(values))  # type: ignore[no-any-return]


def encode_id(value: object) -> str:
    """Return a message id as JSON. The protocol allows strings and numbers; Storm returns them with their JSON type."""
    reason = reason_against(value)
    if reason is not None:
        raise UnserializableValue(f"the message id {_show(value)}: {reason}")
    return dumps(value)


def id_as_received(value: Any) -> Any:
    """Return a message id as Storm returns it, or raise the error of ``encode_id``."""
    kind = type(value)
    if (kind is int and MIN_INT <= value <= MAX_INT) or (kind is str and value.isascii()):
        return value
    return loads(encode_id(value))


def reason_against(value: object, depth: int = 1) -> str | None:  # noqa: C901 - one branch a kind of value
    """Return the reason that ``value`` can't be sent, or None when it can be sent."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return f"a string with a lone surrogate ({_show(value)}) has no UTF-8 form; replace or escape it"
        return None
    if isinstance(value, int):
        if MIN_INT <= value <= MAX_INT:
            return None
        return f"the integer {_show(value)} is beyond 64 bits; send it as a string"
    if isinstance(value, float):
        if value - value == 0.0:
            return None
        return f"{value!r} has no JSON form; send None or a string"
    if isinstance(value, list | tuple):
        if depth > MAX_DEPTH:
            return f"nested deeper than {MAX_DEPTH} levels, which Storm's parser refuses"
        for item in value:
            reason = reason_against(item, depth + 1)
            if reason is not None:
                return reason
        return None
    if isinstance(value, dict):
        if depth > MAX_DEPTH:
            return f"nested deeper than {MAX_DEPTH} levels, which Storm's parser refuses"
        for key, item in value.items():
            if not isinstance(key, str):
                return (
                    f"the key {_show(key)} of a dict is {_kind(key)}; JSON has string keys only, convert it with str()"
                )
            reason = reason_against(key) or reason_against(item, depth + 1)
            if reason is not None:
                return reason
        return None
    return f"{_show(value)} is {_kind(value)}, which JSON does not have{_hint(value)}"


def _as_storm_keeps_it(text: str) -> str:
    """Rewrite ujson's text where json-smart would change its meaning."""
    if "e+16" in text:
        import re

        # Strings are matched as a whole, so that a number inside of one is left alone.
        text = re.sub(r'"[^"\\]*(?:\\.[^"\\]*)*"|\b(\d)\.(\d{16})e\+16\b', _without_exponent, text)
    return text.replace("\x7f", "\\u007f")


def _without_exponent(found: re.Match[str]) -> str:
    return found[0] if found[1] is None else f"{found[1]}{found[2]}.0"


def _check(values: Sequence[Any]) -> None:
    if not isinstance(values, list | tuple):
        raise UnserializableValue(f"a tuple's values are a list, not {_kind(values)}: {_show(values)}")
    for index, value in enumerate(values):
        reason = reason_against(value)
        if reason is not None:
            raise UnserializableValue(reason, index)


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"


def _show(value: object) -> str:
    if isinstance(value, int):
        return str(value) if value.bit_length() < 128 else f"of {value.bit_length()} bits"
    text = ascii(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _hint(value: object) -> str:
    name = type(value).__name__
    if isinstance(value, bytes | bytearray):
        return "; decode it, or send base64 text"
    if isinstance(value, set | frozenset):
        return "; send sorted(...) or list(...)"
    if name in ("date", "datetime", "time"):
        return "; send .isoformat() or a number"
    if name == "Decimal":
        return "; send str(...) or float(...)"
    if hasattr(value, "tolist") or hasattr(value, "item"):
        return "; convert it with .item() or .tolist()"
    return "; send strings, numbers, booleans, None, lists and dicts"

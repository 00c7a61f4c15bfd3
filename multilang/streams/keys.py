"""The keys of keyed streams, and their form on the wire.

A key is a string, an integer, or a tuple of these. On the wire and in states it is a string or an integer: a tuple is
JSON text there, and a string that looks like such text is JSON text, too. So equal keys, and only these, have equal
values, with equal hashes in Python and in Storm's worker. (JSON has no tuples; 1, 1.0 and True are one key to Python and
three to Java, so that only the first may be a key.)
"""

from __future__ import annotations

from multilang.protocol.codec import dumps, loads
from multilang.topology.javahash import task_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    Key: TypeAlias = str | int | tuple["Key", ...]
    WireKey: TypeAlias = str | int

_JSON = ("[", '"')  # what the text of a tuple and of an encoded string begins with
_PLAIN = frozenset({str, int})
_FIRST_HASH = 31  # of an array with one item, to which the item's own hash is added


def check_key(key: object) -> None:
    """Raise TypeError unless ``key`` can be a key."""
    kind = type(key)
    if kind is str or kind is int:
        return
    if isinstance(key, tuple):
        for part in key:
            check_key(part)
        return
    raise TypeError(
        f"the key is {key!r:.80} ({kind.__name__}); a key is a string, an integer, or a tuple of these, which hash alike in "
        "every process and on Storm: return str(...) or int(...) of it"
    )


def check_keys(keys: Sequence[object]) -> None:
    """Raise TypeError for the first of some values that can't be a key."""
    if not _PLAIN.issuperset(map(type, keys)):
        for key in keys:
            check_key(key)


def encode(key: Any) -> WireKey:
    """Return a key's form on the wire."""
    kind = type(key)
    if kind is str:
        return dumps(key) if key[:1] in _JSON else key
    return key if kind is int else dumps(key)


def decode(key: WireKey) -> Any:
    """Return the key with this form on the wire."""
    return _tuples(loads(key)) if type(key) is str and key[:1] in _JSON else key


def _tuples(value: Any) -> Any:
    return tuple(_tuples(part) for part in value) if isinstance(value, list) else value


def part_of(key: WireKey, tasks: int) -> int:
    """Return a number that a fields grouping sends to the same task as the key."""
    return (task_index((key,), tasks) - _FIRST_HASH) % tasks

"""Keys and message ids of tuples, from the fields that a windowed bolt names."""

from __future__ import annotations

from multilang.component.errors import ReportedFailedException
from multilang.windowing.keys import inner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from multilang.protocol.messages import Tuple
    from multilang.windowing.settings import Settings


def key_function(settings: Settings) -> Callable[[Tuple], Any]:
    """Return the function that returns a tuple's key, and fails a tuple that has none."""
    names = settings.key_by
    if names is None:
        return _no_key
    if len(names) == 1:
        name = names[0]

        def key(tup: Tuple) -> Any:
            value = tup[name]
            kind = type(value)
            if kind is list or kind is dict:
                raise _unusable(settings, value)
            return inner(value)

        return key

    def keys(tup: Tuple) -> Any:
        values = tuple([tup[name] for name in names])
        try:
            hash(values)
        except TypeError:
            raise _unusable(settings, values) from None
        return inner(values)

    return keys


def _no_key(_: Tuple) -> None:
    """Return the key of all tuples of a bolt without ``key_by``."""


def _unusable(settings: Settings, value: object) -> ReportedFailedException:
    return ReportedFailedException(
        f"{settings.who}: key_by {', '.join(settings.key_by or ())} has the value {value!r:.80}; a key consists of strings, numbers, "
        "booleans and None, no lists and objects"
    )


def message_id(tup: Tuple, field: str, settings: Settings) -> Any:
    """Return a tuple's message id.

    Raises:
        ReportedFailedException: It has none.
    """
    value = tup[field]
    if value is None or type(value) is list or type(value) is dict:
        raise ReportedFailedException(
            f"{settings.who}: id_field {field} has the value {value!r:.80}; a message id is a string or a number, which each tuple "
            "has of its own"
        )
    return inner(value)

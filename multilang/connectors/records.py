"""A tuple as the record that a sink writes."""

from __future__ import annotations

from multilang.protocol.codec import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from multilang.protocol.messages import Tuple


def record(tup: Tuple, fields: Sequence[str] | None) -> dict[str, Any]:
    """Return a tuple's values by the names of their fields.

    Args:
        tup: The tuple.
        fields: The fields to take; None: all.

    Raises:
        KeyError: The tuple has no such field.
    """
    return tup.asdict() if fields is None else {field: tup[field] for field in fields}


def as_text(value: Any) -> str:
    """Return a value as text: text as it is, all else as JSON."""
    return value if isinstance(value, str) else dumps(value)

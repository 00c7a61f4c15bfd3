"""Tuples as the records that a sink writes."""

from __future__ import annotations

from multilang.component.errors import ConnectorError
from multilang.protocol.codec import dumps
from multilang.protocol.errors import LocalProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from multilang.component.batching import BatchingBolt
    from multilang.protocol.messages import Tuple

    R = TypeVar("R")


def made_of(
    bolt: BatchingBolt, tups: Sequence[Tuple], make: Callable[[Tuple], R], where: str
) -> tuple[list[Tuple], list[R]]:
    """Make a record of each tuple. A tuple that has none fails alone: it would fail the others of its batch at each replay.

    Args:
        bolt: The sink, which reports how many tuples fail, and why the first of them does.
        tups: Tuples of one batch.
        make: Returns a tuple's record, or raises an error with the reason why there is none: ConnectorError, LocalProtocolError, LookupError, TypeError or ValueError.
        where: The sink's target, in the words of a message.

    Returns:
        The tuples that have a record, and their records, in the same order.
    """
    taken: list[Tuple] = []
    records: list[R] = []
    reason = ""
    for tup in tups:
        try:
            records.append(make(tup))
        except (ConnectorError, LocalProtocolError, LookupError, TypeError, ValueError) as problem:
            reason = reason or _text_of(problem)
            bolt.fail(tup)
        else:
            taken.append(tup)
    if reason:
        bolt.report_error(
            f"{len(tups) - len(taken)} of {len(tups)} tuples can't be written to {where}: {reason}; they fail"
        )
    return taken, records


def _text_of(problem: Exception) -> str:
    """Return an exception's text, which of a KeyError is quoted by itself."""
    text = problem.args[0] if isinstance(problem, KeyError) and problem.args else problem
    return str(text) or type(problem).__name__


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

"""A bolt's most common emit as a single function.

Nearly all emits of a bolt have plain values, a declared stream that is not direct, one anchor, and task ids that are
not wanted or not waited for. Their message is the values between two texts that are made once per stream. Everything
else, and every error, goes to the slow path (``otherwise``), which checks everything and reports what is wrong.
"""

from __future__ import annotations

from multilang.protocol.codec import encode_values
from multilang.protocol.errors import UnserializableValue
from multilang.protocol.messages import Tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from multilang.protocol.child import ChildConnection
    from multilang.protocol.messages import Values

    class HasAnchors(Protocol):
        """Something that has the anchors to use when none are given."""

        anchors: Sequence[Tuple]


class NoAnchors:
    """The default of an emit that is anchored only to what it names."""

    anchors: Sequence[Tuple] = ()


_NO_ANCHORS = NoAnchors()


def fast_ack(connection: ChildConnection) -> Callable[[Tuple | str], None]:
    """Return a faster ``connection.ack``: what it reads for each tuple is in local cells."""
    unfinished, otherwise, kind = connection.unfinished, connection.ack, Tuple

    def ack(tup: Tuple | str) -> None:
        if type(tup) is kind and tup.unfinished and connection.plain_ids:
            tup.unfinished = False
            id = tup.id
            if unfinished:
                unfinished.pop(id, None)
            connection.write(f'{{"command":"ack","id":"{id}"}}\nend\n')
        else:
            otherwise(tup)

    return ack


def fast_emit(
    connection: ChildConnection, otherwise: Callable[..., Any], default: HasAnchors = _NO_ANCHORS
) -> Callable[..., Any]:
    """Return an ``emit`` with the signature of Bolt.emit; without ``anchors`` it uses those of ``default``."""
    plain = connection.plain
    encode = encode_values  # a function's cells are read faster than a module's names

    def emit(
        values: Values,
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> Any:
        if anchors is None:
            anchors = default.anchors
        kind = type(anchors)
        try:
            if (
                (kind is list or kind is tuple)
                and len(anchors) == 1
                and type(values) is list
                and direct_task is None
                and not need_task_ids
            ):
                arity, text = plain[stream]
                tup: Any = anchors[0]
                if (len(values) == arity or arity == -1) and tup.unfinished:
                    if on_task_ids is None:
                        connection.write(f'{text}{tup.id}"],"need_task_ids":false,"tuple":{encode(values)}}}\nend\n')
                    else:
                        connection.write_asking(f'{text}{tup.id}"],"tuple":{encode(values)}}}\nend\n', on_task_ids)
                    return None
        except (AttributeError, LookupError, TypeError, UnserializableValue):
            # for a stream that is not plain, an anchor given by its id, or what can't be sent: the slow path sends it or
            # reports what is wrong
            pass
        return otherwise(values, stream, anchors, direct_task, need_task_ids, on_task_ids)

    return emit

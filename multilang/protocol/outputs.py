"""The streams that a component may emit to, as the handshake describes them, and the checks of one emit.

Storm accepts a wrong number of values in silence, and the component that reads the field breaks. Storm halts the worker
for an undeclared stream, and for a direct emit to a subscriber whose grouping is not direct.
"""

from __future__ import annotations

from multilang.protocol.codec import dumps, encode_values
from multilang.protocol.errors import LocalProtocolError, UnserializableValue
from multilang.protocol.messages import DEFAULT_STREAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class OutStream:
    """An output stream as the handshake describes it: its fields, and whether its subscribers want direct emits."""

    __slots__ = ("arity", "direct", "fields", "name", "part")

    def __init__(self, name: str, fields: list[str] | None, direct: bool | None) -> None:
        self.name = name
        self.fields = fields
        self.arity = -1 if fields is None else len(fields)
        self.direct = direct  # None: it has no subscriber, or the context does not show it
        self.part = "" if name == DEFAULT_STREAM else f'"stream":{dumps(name)},'


class Outputs:
    """The output streams of a component, by name; None is the default stream."""

    def __init__(self) -> None:
        self.component = "?"
        self.streams: dict[str | None, OutStream] = {}
        # For fast_emit, for each stream that is not direct: the number of its fields (-1: not known), and the beginning
        # of a message on it, up to the id of its one anchor.
        self.plain: dict[str | None, tuple[int, str]] = {}
        self._all_plain = True
        self._known = False  # the context has the streams
        self._task_component: dict[int, str] = {}
        self._targets: dict[str, dict[str, Any]] = {}

    def learn(self, component: str, task_component: dict[int, str], context: dict[str, Any]) -> None:
        """Read the component's streams and their subscribers from the handshake."""
        self.component = component
        self._task_component = task_component
        outputs = context.get("stream->outputfields")
        targets = context.get("stream->target->grouping") or {}
        self._known = bool(outputs) or "streams" in context
        fields_of: dict[str, list[str] | None] = {**dict.fromkeys(context.get("streams", ())), **(outputs or {})}
        for name, fields in fields_of.items():
            groupings = [g.get("type") for g in (targets.get(name) or {}).values()]
            self._add(name, OutStream(name, fields, "DIRECT" in groupings if groupings else None))
            self._targets[name] = targets.get(name) or {}
        if DEFAULT_STREAM in self.streams:
            self._add(None, self.streams[DEFAULT_STREAM])

    def nothing_plain(self) -> None:
        """Send every emit along the slow path from now on."""
        self._all_plain = False
        self.plain.clear()

    def _add(self, stream: str | None, out: OutStream) -> None:
        self.streams[stream] = out
        if not out.direct and self._all_plain:
            self.plain[stream] = (out.arity, f'{{"command":"emit",{out.part}"anchors":["')

    def stream(self, stream: str | None) -> OutStream:
        """Return a stream that is not among ``streams`` yet.

        Raises:
            LocalProtocolError: The context lists all streams, and this is none of them.
        """
        name = DEFAULT_STREAM if stream is None else stream
        if not isinstance(name, str):
            raise LocalProtocolError(
                f"component {self.component!r}: stream is a name, not {type(stream).__name__} ({stream!r})"
            )
        if self._known:
            known = ", ".join(repr(s) for s in self.streams if s is not None) or "none"
            raise LocalProtocolError(
                f"component {self.component!r} emits on stream {name!r}, which it does not declare (declared: {known}); "
                "add it to output_fields or output_streams"
            )
        found = OutStream(name, None, None)
        self._add(stream, found)
        return found

    def check(self, stream: str, values: Sequence[Any], task: int | None) -> None:
        """Check one emit, in the same way on every engine.

        Raises:
            LocalProtocolError: The component declares no such stream, the stream has another number of fields, the
                topology has no such task, or the emit is direct and the subscriber's grouping is not, or the other way
                round.
        """
        out = self.streams.get(stream)
        if out is None:
            out = self.stream(stream)
        if task is not None or out.direct:
            self.check_direct(out, task)
        self._check_width(out, values)

    def _check_width(self, out: OutStream, values: Sequence[Any]) -> None:
        # Storm accepts a wrong number of values in silence, and whatever reads the field breaks.
        if out.arity != -1 and isinstance(values, (list, tuple)) and len(values) != out.arity:
            raise LocalProtocolError(
                f"component {self.component!r} emits {len(values)} values on stream {out.name!r}, which declares "
                f"{out.arity}: {', '.join(out.fields or ())}"
            )

    def encode(self, out: OutStream, values: Sequence[Any]) -> str:
        """Return the values as JSON, after checking that their number is that of the stream's fields."""
        self._check_width(out, values)
        try:
            return encode_values(values)
        except UnserializableValue as error:
            field = ""
            if error.index is not None and out.fields and error.index < len(out.fields):
                field = f" (field {out.fields[error.index]!r})"
            at = "" if error.index is None else f", value {error.index}{field}"
            where = f"component {self.component!r}, stream {out.name!r}{at}"
            raise UnserializableValue(error.reason, error.index, where) from None

    def check_direct(self, out: OutStream, task: int | None) -> None:
        """Check that ``task`` may be sent to on this stream, or, for None, that the stream needs no task."""
        if task is None:
            raise LocalProtocolError(
                f"component {self.component!r}: stream {out.name!r} is subscribed by direct grouping; "
                "emit with direct_task=<task id> (on the wire: 'task')"
            )
        if type(task) is not int or task < 0:
            raise LocalProtocolError(f"component {self.component!r}: direct_task is a task id, not {task!r}")
        components = self._task_component
        if components and task not in components:
            raise LocalProtocolError(
                f"component {self.component!r} emits to task {task}, which the topology does not have; "
                f"tasks of a component: context.tasks(name)"
            )
        target = components.get(task) if components else None
        grouping = self._targets.get(out.name, {}).get(target or "")
        if grouping is not None and grouping.get("type") != "DIRECT":
            raise LocalProtocolError(
                f"component {self.component!r} emits directly to task {task} of {target!r}, which takes stream "
                f"{out.name!r} by {grouping.get('type')} grouping; subscribe with direct_grouping or emit without direct_task"
            )

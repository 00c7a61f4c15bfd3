"""The messages of the multi-lang protocol, one small class each.

Source: Storm's "Multi-Lang Protocol" page (1.1.0) and what Storm 2.8.3 does on the wire. These are plain classes with
slots, no dataclasses: each import delays a child process's first answer to its parent.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, ClassVar, TypeAlias

    Schema: TypeAlias = dict[tuple[str, str], dict[str, int]]
    Values: TypeAlias = list[Any] | tuple[Any, ...]  # no Sequence: a string is one, whose letters would be the values

# The log levels of ShellBolt and ShellSpout, as numbers on the wire.
TRACE, DEBUG, INFO, WARN, ERROR = range(5)

DEFAULT_STREAM = "default"
HEARTBEAT_STREAM = "__heartbeat"
TICK_STREAM = "__tick"
SYSTEM_COMPONENT = "__system"
SYSTEM_STREAM = "__system"  # each component has it, and nothing subscribes to it
SYSTEM_TASK = -1


class Message:
    """The base of all messages. Messages are compared and shown by their fields."""

    __slots__: tuple[str, ...] = ()
    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


# ---- from Storm to the component ----


class Setup(Message):
    """The initial handshake: the topology's conf, the folder for the PID file, and the task's context."""

    __slots__ = ("conf", "context", "pid_dir")

    def __init__(self, conf: dict[str, Any], pid_dir: str, context: dict[str, Any]) -> None:
        self.conf = conf
        self.pid_dir = pid_dir
        self.context = context


class Next(Message):
    """Ask a spout for its next tuple."""

    __slots__ = ()


class Activate(Message):
    """The topology was activated."""

    __slots__ = ()


class Deactivate(Message):
    """The topology was deactivated: no next comes until it is activated again."""

    __slots__ = ()


class Ack(Message):
    """To a spout: the tuple with this message id was fully processed. From a bolt: this input is done."""

    __slots__ = ("id",)

    def __init__(self, id: Any) -> None:
        self.id = id


class Fail(Message):
    """To a spout: the tuple with this message id failed or timed out. From a bolt: this input failed."""

    __slots__ = ("id",)

    def __init__(self, id: Any) -> None:
        self.id = id


class TaskIds(Message):
    """The tasks that a tuple went to, in answer to an emit. ``token`` is what the emit was marked with."""

    __slots__ = ("tasks", "token")

    def __init__(self, tasks: list[int], token: Any = None) -> None:
        self.tasks = tasks
        self.token = token


class Heartbeat(Message):
    """A request to a bolt for a sign of life; it answers with sync."""

    __slots__ = ("id",)

    def __init__(self, id: str) -> None:
        self.id = id


class Tuple(Message):
    """A tuple that a bolt received.

    Its values are found by position (``tup[0]``) or by field name (``tup["word"]``).

    Attributes:
        id: Storm's id of this delivery.
        component: The component that emitted it; Storm's own tuples, such as ticks, come from ``__system``.
        stream: The stream that it was emitted to.
        task: The id of the task that emitted it.
        values: The values, in the order of the stream's fields.
        schema: The positions of the fields, by component and stream; None when they are not known.
        unfinished: True from its arrival until it is acked or failed.
    """

    __slots__ = ("component", "id", "schema", "stream", "task", "unfinished", "values")

    def __init__(
        self,
        id: str,
        component: str,
        stream: str,
        task: int,
        values: list[Any],
        schema: Schema | None = None,
        unfinished: bool = False,
    ) -> None:
        self.id = id
        self.component = component
        self.stream = stream
        self.task = task
        self.values = values
        self.schema = schema
        self.unfinished = unfinished

    def __getitem__(self, key: int | str) -> Any:
        if type(key) is str:
            try:
                return self.values[self.schema[self.component, self.stream][key]]  # type: ignore[index]
            except (KeyError, TypeError, IndexError):
                raise KeyError(self._no_field(key)) from None
        return self.values[key]  # type: ignore[index]

    def __reduce__(self) -> tuple[Any, ...]:
        # For a copy, or a tuple that returns from another process. Storm takes only one ack: the original counts as
        # finished.
        return Tuple, (self.id, self.component, self.stream, self.task, self.values, self.schema)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __contains__(self, value: object) -> bool:
        return value in self.values

    def get(self, field: str, default: Any = None) -> Any:
        """Return the value of ``field``, or ``default`` when the tuple's stream has no such field."""
        index = (self.schema or {}).get((self.component, self.stream), {}).get(field)
        return default if index is None or index >= len(self.values) else self.values[index]

    @property
    def fields(self) -> list[str]:
        """The names of the values, as the source declared them; empty when the context has none."""
        return list((self.schema or {}).get((self.component, self.stream), ()))

    def asdict(self) -> dict[str, Any]:
        """Return the values by field name."""
        return dict(zip(self.fields, self.values, strict=False))

    @property
    def is_tick(self) -> bool:
        """True for a tick tuple (``topology.tick.tuple.freq.secs``)."""
        return self.stream == TICK_STREAM and self.component == SYSTEM_COMPONENT

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tuple):
            return NotImplemented
        return (self.id, self.component, self.stream, self.task, self.values) == (
            other.id,
            other.component,
            other.stream,
            other.task,
            other.values,
        )

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(self.id)

    def __repr__(self) -> str:
        return (
            f"Tuple(id={self.id!r}, component={self.component!r}, stream={self.stream!r}, "
            f"task={self.task!r}, values={self.values!r})"
        )

    def _no_field(self, key: str) -> str:
        fields = self.fields
        where = f"stream {self.stream!r} of {self.component!r}"
        if fields and key in fields:
            return f"{where} sent {len(self.values)} values, too few to hold field {key!r}"
        if fields:
            return f"{where} has no field {key!r}; it has {', '.join(map(repr, fields))}"
        return f"the fields of {where} are not known here (asked for {key!r}); use a position, as tup[0]"


# ---- from the component to Storm ----


class Pid(Message):
    """The component's answer to the handshake."""

    __slots__ = ("pid",)

    def __init__(self, pid: int) -> None:
        self.pid = pid


class Emit(Message):  # noqa: PLW1641 - not hashable, as all messages
    """A tuple to send; ``id`` is a spout's message id, ``task`` the target of a direct emit."""

    __slots__ = ("anchors", "id", "need_task_ids", "stream", "task", "values")

    def __init__(
        self,
        values: list[Any],
        stream: str = DEFAULT_STREAM,
        id: Any = None,
        anchors: Sequence[str] = (),
        task: int | None = None,
        need_task_ids: bool = True,
    ) -> None:
        self.values = values
        self.stream = stream
        self.id = id
        self.anchors = anchors
        self.task = task
        self.need_task_ids = need_task_ids

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Emit):
            return NotImplemented
        mine, theirs = list(self.anchors), list(other.anchors)
        return mine == theirs and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__ if name != "anchors"
        )


class Log(Message):
    """A line for the worker's log. ``level`` is one of the levels above (Storm's default: info)."""

    __slots__ = ("level", "message")

    def __init__(self, message: str, level: int = INFO) -> None:
        self.message = message
        self.level = level


class Error(Message):
    """An error for the worker's log and Storm's UI; the worker continues."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message


class Metrics(Message):
    """A value for the metric registered as ``name`` on the Java side."""

    __slots__ = ("name", "params")

    def __init__(self, name: str, params: Any) -> None:
        self.name = name
        self.params = params


class Sync(Message):
    """From a spout: the last command is done. From a bolt: a sign of life.

    Attributes:
        exhausted: For our own parent: whether a spout has no more tuples; None: it is unknown.
        busy: For our own parent: the seconds in which the component was busy since its start, sent now and then; None
            otherwise.
        timers: For our own parent: whether a bolt has timers to wait for; None: it is unknown.
        timer_secs: The seconds until a spout's next timer, after which it is to get a command; None for none.
        unread: For our own parent: how many more tuples a bolt emitted that nobody gets, and so did not send.
    """

    __slots__ = ("busy", "exhausted", "timer_secs", "timers", "unread")

    def __init__(
        self,
        exhausted: bool | None = None,
        busy: float | None = None,
        timers: bool | None = None,
        timer_secs: float | None = None,
        unread: int = 0,
    ) -> None:
        self.exhausted = exhausted
        self.busy = busy
        self.timers = timers
        self.timer_secs = timer_secs
        self.unread = unread

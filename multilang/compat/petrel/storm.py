"""Petrel's version of storm.py: the functions that emit and ack, and the classes of spouts and bolts."""

from __future__ import annotations

import json
import logging
import os
import socket
import sys

from multilang.compat.storm import calls
from multilang.compat.storm import components as base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

storm_log = logging.getLogger("storm")
json_encode = json.dumps
json_decode = json.loads


class StormIPCException(Exception):
    """The connection to Storm broke."""


def emit(*args: Any, **kwargs: Any) -> Any:
    """Send a tuple: ``emit(values, stream, anchors)`` in a bolt, ``emit(values, stream, id)`` in a spout.

    Returns:
        With ``need_task_ids=True`` the ids of the tasks that it goes to, otherwise None.
    """
    return calls.current().emit(*args, **kwargs)


def emitDirect(task: int, *args: Any, **kwargs: Any) -> None:  # noqa: N802 - Petrel's names, as all below
    """Send a tuple to one task."""
    calls.current().emit(*args, **kwargs, directTask=task)


def emitMany(tuples: Iterable[Any], *args: Any, **kwargs: Any) -> None:  # noqa: N802
    """Send several tuples in the same way; the other arguments are those of ``emit``."""
    send = calls.current().emit
    for tup in tuples:
        send(tup, *args, **kwargs)


emitBolt = emitSpout = emit  # noqa: N816
emitManyBolt = emitManySpout = emitMany  # noqa: N816
ack = calls.ack
fail = calls.fail
reportError = calls.reportError  # noqa: N816


def ackId(tupid: Any) -> None:  # noqa: N802
    """Ack the tuple with this id."""
    calls.current().ack(Tuple(tupid, None, None, None, None))


def log(msg: Any) -> None:
    """Write a line to Storm's log."""
    calls.log(msg)


def sendFailureMsgToParent(msg: str) -> None:  # noqa: N802
    """Show an error in Storm's log and UI."""
    calls.reportError(msg)


def initialize_profiling() -> None:
    """Do nothing: this library measures the time that components take by itself."""


class Tuple:
    """A tuple that a bolt received, with its values as a list."""

    __slots__ = ("component", "id", "stream", "task", "values")

    def __init__(self, id: Any, component: Any, stream: Any, task: Any, values: Any) -> None:
        self.id = id
        self.component = component
        self.stream = stream
        self.task = task
        self.values = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tuple) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = "".join(f" {name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"<{type(self).__name__}{shown}>"

    def is_heartbeat_tuple(self) -> bool:
        """Return whether it is a heartbeat; the engine answers those itself."""
        return bool(self.task == -1 and self.stream == "__heartbeat")

    def is_tick_tuple(self) -> bool:
        """Return whether it is a tick."""
        return bool(self.task == -1 and self.stream == "__tick")


class Task:
    """The base of Petrel's spouts and bolts.

    Attributes:
        task_index: -1, as with every Storm that is not patched.
        worker_port: -1, for the same reason.
        profiler: None: this library measures the time that components take by itself.
    """

    task_index = -1
    worker_port = -1
    profiler: Any = None

    def run(self) -> None:
        """Run the component as the process of one task, until its input ends."""
        from importlib import import_module

        import_module("multilang.compat.petrel.running").run(self)  # it imports this module

    def report_exception(self, base_message: Any, exception: BaseException) -> None:
        """Report an exception to Storm's log and UI."""
        script = os.environ.get("SCRIPT", sys.argv[0])
        host = socket.gethostname()
        reportError(f"{base_message}: {script} (pid {os.getpid()}) on {host} failed with {exception!r}")


class Bolt(Task, base.Bolt):
    """A bolt that anchors and acks by itself; ticks come to ``process``, too."""


class BasicBolt(Task, base.BasicBolt):
    """A bolt whose emits are anchored to the tuple in process, which is acked when ``process`` returns.

    Ticks come to ``process``, too. An exception ends the process.
    """


class Spout(Task, base.Spout):
    """A source of tuples."""

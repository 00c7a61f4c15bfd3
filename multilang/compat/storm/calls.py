"""The functions of storm.py, which act for the task whose code calls them."""

from __future__ import annotations

import json
import sys

from multilang.protocol.errors import LocalProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

json_encode = json.dumps
json_decode = json.loads
_task: Any = None  # of this process's component; with several in one process, of the one that is called


def enter(task: Any) -> None:
    """Let the functions act for a task from now on."""
    global _task
    _task = task


def current() -> Any:
    """Return the task that the functions act for.

    Raises:
        LocalProtocolError: No component runs.
    """
    if _task is None:
        raise LocalProtocolError("storm's functions are there from a component's initialize() on, while it runs")
    return _task


def emit(*args: Any, **kwargs: Any) -> Any:
    """Send a tuple: ``emit(values, stream, anchors)`` in a bolt, ``emit(values, stream, id)`` in a spout.

    Returns:
        The ids of the tasks that it goes to, which are waited for on their first use.
    """
    return current().emit(*args, **kwargs)


def emitDirect(task: int, *args: Any, **kwargs: Any) -> None:  # noqa: N802 - storm.py's names, as all below
    """Send a tuple to one task."""
    current().emit(*args, **kwargs, directTask=task)


def emitBolt(tup: Any, stream: Any = None, anchors: Any = (), directTask: Any = None) -> None:  # noqa: N802, N803
    """Send a tuple from a bolt."""
    current().emit(tup, stream, anchors, directTask)


def emitSpout(tup: Any, stream: Any = None, id: Any = None, directTask: Any = None) -> None:  # noqa: N802, N803
    """Send a tuple from a spout."""
    current().emit(tup, stream, id, directTask)


def ack(tup: Any) -> None:
    """Ack a tuple."""
    current().ack(tup)


def fail(tup: Any) -> None:
    """Fail a tuple."""
    current().fail(tup)


def sync() -> None:
    """Do nothing: the engine answers the parent by itself."""


def reportError(msg: Any) -> None:  # noqa: N802
    """Show an error in Storm's log and UI."""
    current().collector.report_error(str(msg))


def rpcMetrics(name: str, params: Any) -> None:  # noqa: N802
    """Send a value for a metric that the Java side registered."""
    current().collector.report_metric(name, params)


def log(msg: Any, level: int = 2) -> None:
    """Write a line to Storm's log: level 0 is trace, 1 debug, 2 info, 3 warn, 4 error. Before a component runs, it goes to stderr."""
    if _task is None:
        sys.stderr.write(f"{msg}\n")
    else:
        current().collector.log(str(msg), level)


def logTrace(msg: Any) -> None:  # noqa: N802
    """Write a line of the level trace."""
    log(msg, 0)


def logDebug(msg: Any) -> None:  # noqa: N802
    """Write a line of the level debug."""
    log(msg, 1)


def logInfo(msg: Any) -> None:  # noqa: N802
    """Write a line of the level info."""
    log(msg, 2)


def logWarn(msg: Any) -> None:  # noqa: N802
    """Write a line of the level warn."""
    log(msg, 3)


def logError(msg: Any) -> None:  # noqa: N802
    """Write a line of the level error."""
    log(msg, 4)

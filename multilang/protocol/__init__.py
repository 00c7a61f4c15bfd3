"""The multi-lang wire without I/O: bytes in, events out; commands in, bytes out.

``ChildConnection`` is a component's end, ``ParentConnection`` is Storm's. The source is Storm's "Multi-Lang Protocol"
page (1.1.0); where that page is silent, it is what Storm 2.8.3 does.
"""

from __future__ import annotations

from multilang.protocol.child import ChildConnection
from multilang.protocol.errors import LocalProtocolError, RemoteProtocolError, UnserializableValue
from multilang.protocol.fast import fast_emit
from multilang.protocol.messages import (
    Ack,
    Activate,
    Deactivate,
    Emit,
    Error,
    Fail,
    Heartbeat,
    Log,
    Message,
    Metrics,
    Next,
    Pid,
    Setup,
    Sync,
    TaskIds,
    Tuple,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.protocol.parent import ParentConnection

__all__ = [
    "Ack",
    "Activate",
    "ChildConnection",
    "Deactivate",
    "Emit",
    "Error",
    "Fail",
    "Heartbeat",
    "LocalProtocolError",
    "Log",
    "Message",
    "Metrics",
    "Next",
    "ParentConnection",
    "Pid",
    "RemoteProtocolError",
    "Setup",
    "Sync",
    "TaskIds",
    "Tuple",
    "UnserializableValue",
    "fast_emit",
]


def __getattr__(name: str) -> object:
    if name == "ParentConnection":  # a child process does not need it
        from multilang.protocol.parent import ParentConnection

        return ParentConnection
    raise AttributeError(f"module 'multilang.protocol' has no attribute {name!r}")

"""The classes that users subclass, and the process that runs a component.

Subclass Spout, ReliableSpout, Bolt, BasicBolt or BatchingBolt; declare its streams with ``output_fields`` or
``output_streams``; put it into a topology, or run it alone with ``.run()``.
"""

from __future__ import annotations

from multilang.component.bolt import BasicBolt, Bolt
from multilang.component.context import Context
from multilang.component.errors import ConfigError, FailedException, ReportedFailedException
from multilang.component.spout import Spout
from multilang.component.streams import Stream
from multilang.helpers.lazy import lazily
from multilang.protocol.messages import Tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.component.base import Component
    from multilang.component.batching import BatchingBolt, LingeringBolt
    from multilang.component.clock import TaskClock
    from multilang.component.many import Tuples
    from multilang.component.middleware import Middleware, Retry, Timing
    from multilang.component.reliable import ReliableSpout
    from multilang.component.timers import TimerHandle

__all__ = [
    "BasicBolt",
    "BatchingBolt",
    "Bolt",
    "Component",
    "ConfigError",
    "Context",
    "FailedException",
    "LingeringBolt",
    "Middleware",
    "ReliableSpout",
    "ReportedFailedException",
    "Retry",
    "Spout",
    "Stream",
    "TaskClock",
    "TimerHandle",
    "Timing",
    "Tuple",
    "Tuples",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        ".base": ("Component",),
        ".batching": ("BatchingBolt", "LingeringBolt"),
        ".clock": ("TaskClock",),
        ".many": ("Tuples",),
        ".middleware": ("Middleware", "Retry", "Timing"),
        ".reliable": ("ReliableSpout",),
        ".timers": ("TimerHandle",),
    },
)

"""Windows: bolts that work on the tuples of a time, of a number of them, or of a session, by event or processing time.

Subclass WindowedBolt, or StatefulWindowedBolt for windows that are longer than the message timeout.
"""

from __future__ import annotations

from multilang.helpers.lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.windowing.aggregates import Aggregate, Count, Distinct, Max, Mean, Min, Sum, TopN
    from multilang.windowing.bolt import WindowedBolt
    from multilang.windowing.settings import MemoryLimitError
    from multilang.windowing.sketches import ApproximateDistinct
    from multilang.windowing.specs import Session, Sliding, Tumbling, days, hours, milliseconds, minutes, seconds
    from multilang.windowing.stateful import StatefulWindowedBolt
    from multilang.windowing.window import EARLY, LATE, ON_TIME, RETRACTED, Window

__all__ = [
    "EARLY",
    "LATE",
    "ON_TIME",
    "RETRACTED",
    "Aggregate",
    "ApproximateDistinct",
    "Count",
    "Distinct",
    "Max",
    "Mean",
    "MemoryLimitError",
    "Min",
    "Session",
    "Sliding",
    "StatefulWindowedBolt",
    "Sum",
    "TopN",
    "Tumbling",
    "Window",
    "WindowedBolt",
    "days",
    "hours",
    "milliseconds",
    "minutes",
    "seconds",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        ".aggregates": ("Aggregate", "Count", "Distinct", "Max", "Mean", "Min", "Sum", "TopN"),
        ".bolt": ("WindowedBolt",),
        ".settings": ("MemoryLimitError",),
        ".sketches": ("ApproximateDistinct",),
        ".specs": ("Session", "Sliding", "Tumbling", "days", "hours", "milliseconds", "minutes", "seconds"),
        ".stateful": ("StatefulWindowedBolt",),
        ".window": ("EARLY", "LATE", "ON_TIME", "RETRACTED", "Window"),
    },
)

"""The names of coordinated bolts' streams and sources, the same as Storm's."""

from __future__ import annotations

from multilang.component.streams import Stream

COORD_STREAM = "org.apache.storm.coordination.CoordinatedBolt/coord-stream"
COORD = Stream(["id", "count"], direct=True)

SINGLE = "single"
"""Only one task of a source component works on an id, and reports."""
ALL = "all"
"""Every task of a source component reports, even if it emitted nothing."""

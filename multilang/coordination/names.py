"""What coordinated bolts call things, as Storm's do."""

from __future__ import annotations

from multilang.component.streams import Stream

COORD_STREAM = "org.apache.storm.coordination.CoordinatedBolt/coord-stream"
COORD = Stream(["id", "count"], direct=True)

SINGLE = "single"
"""Of a source component one task alone works on an id, and reports."""
ALL = "all"
"""Of a source component every task reports, also one that emitted nothing."""

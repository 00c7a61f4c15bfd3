"""The importing of a topology's module: for what this process does it, and what else the module may import."""

from __future__ import annotations

by_task = False
"""True while a task's process imports it to find its component.

The topology was checked where it was submitted, so that nothing is warned of again, and the module must not start a cluster.
"""

OTHER_LIBRARIES = ("pystorm", "storm", "streamparse")
"""The libraries that ``multilang.compat`` stands in for."""

"""The importing of a topology's module: its purpose, and the names of replaced libraries."""

from __future__ import annotations

by_task = False
"""True while a task's process imports it to find its component.

The topology was checked where it was submitted, so that no warning is repeated, and the module must not start a cluster.
"""

OTHER_LIBRARIES = ("pystorm", "storm", "streamparse")
"""The libraries that ``multilang.compat`` replaces."""

"""The errors of windows."""

from __future__ import annotations


class MemoryLimitError(Exception):
    """The windows of a task have as much in memory as ``memory_limit`` allows."""

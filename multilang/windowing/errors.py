"""The errors of windows."""

from __future__ import annotations

from multilang.component.errors import UnrecoverableError


class MemoryLimitError(UnrecoverableError):
    """The windows of a task have as much in memory as ``memory_limit`` allows.

    The tuples that fill it are not acked, so that a task that is started again would get them all once more, and end like
    this one.
    """

"""A windowed bolt alone, whose source is known before its first tuple."""

from __future__ import annotations

from multilang.testing import BoltRun, make_tuple


def fresh(bolt, *fields, component="source"):
    """Start a bolt that gets tuples of these fields; none has come yet."""
    return BoltRun(bolt, [make_tuple([0] * len(fields), list(fields), component)], None, "bolt", 1, 0)

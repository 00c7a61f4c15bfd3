"""Errors of a source, between a spout and the partitions that it reads."""

from __future__ import annotations

from multilang.component.errors import UnrecoverableError


class SourceError(Exception):
    """A source can't be used as asked; the text names it and the remedy. A retry would not help."""


class SourceUnavailable(SourceError):
    """The source does not answer at present: its driver is gone or busy, or a file system is unreachable.

    A retry may help.
    """


class ChangedRowsError(SourceError, UnrecoverableError):
    """The same offsets gave other rows than before: the RDD is not deterministic, or this is another source."""


class OtherFieldsError(SourceError, UnrecoverableError):
    """A spout declares other fields than its source has. A retry would not help."""


class DamagedError(SourceError):
    """A published file is not what was written: it was cut short, altered, or replaced."""

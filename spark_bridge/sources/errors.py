"""What goes wrong between a spout and the partitions that it reads."""

from __future__ import annotations

from multilang.component.errors import UnrecoverableError


class SourceError(Exception):
    """A source can't be used as asked; the text names it and the fix. Trying again would not help."""


class SourceUnavailable(SourceError):
    """The source does not answer for now: its driver is gone or busy, a file system is out of reach. Worth another try."""


class ChangedRowsError(SourceError, UnrecoverableError):
    """The same offsets gave other rows than before: the RDD is not deterministic, or it is not the same source."""


class OtherFieldsError(SourceError, UnrecoverableError):
    """A spout declares other fields than its source has; to open the source once more would not help."""


class DamagedError(SourceError):
    """A published file is not what was written: cut short, altered, or replaced."""

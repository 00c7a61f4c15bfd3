"""The exceptions that user code raises to fail a tuple, and those that it gets."""

from __future__ import annotations

from multilang.errors import MultilangError


class FailedException(MultilangError):
    """Raise it in ``process`` to fail the tuple: it is replayed, and the process continues (Storm's FailedException)."""


class ReportedFailedException(FailedException):
    """Raise it like FailedException; the error is also shown in Storm's log and UI."""


class ConfigError(MultilangError, ValueError):
    """A value of the topology's conf, a component's declaration, or a file that the user names, is wrong.

    Attributes:
        is_unset: True: a setting that every task needs is not in the conf; it may be given when the topology is submitted.
    """

    is_explained = True

    def __init__(self, message: str, is_unset: bool = False) -> None:
        super().__init__(message)
        self.is_unset = is_unset


class UnrecoverableError(MultilangError):
    """A task can't continue, and a restart would not help, so that the topology ends."""

    is_explained = True


class UnreadableRow:
    """A row of a source, or the rest of a file, that can't be read.

    Attributes:
        source: The file or table.
        number: The number of the row or line, from 1; None: it is not known, or the whole file is meant.
        raw: The row as far as there is a text of it.
        is_rest: Whether nothing behind it can be read, either.
    """

    def __init__(self, source: str, number: int | None = None, raw: str = "", is_rest: bool = False) -> None:
        self.source = source
        self.number = number
        self.raw = raw
        self.is_rest = is_rest


class ConnectorError(MultilangError):
    """A source or sink can't be used as asked, or differs from what was declared; the message names it and the fix.

    Attributes:
        row: The row that can't be read, behind which the source continues; None: the error is about more than that.
    """

    is_explained = True

    def __init__(self, message: str, row: UnreadableRow | None = None) -> None:
        super().__init__(message)
        self.row = row


class SourceUnavailable(ConnectorError):
    """A source does not answer at present. A retry may help."""


class ChangedRowsError(ConnectorError, UnrecoverableError):
    """A source is another one than before: the same offsets have other rows, or it has other fields than the spout declares."""

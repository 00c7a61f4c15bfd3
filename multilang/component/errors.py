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


class ConnectorError(MultilangError):
    """A source or sink can't be used as asked, or differs from what was declared; the message names it and the fix."""

    is_explained = True


class SourceUnavailable(ConnectorError):
    """A source does not answer at present. A retry may help."""


class UnreadableRowError(ConnectorError, UnrecoverableError):
    """A row of a source, or the rest of a file, can't be read, and the source's ``on_unreadable`` is "fail".

    Attributes:
        source: The file or table.
        row: The number of the row or line, from 1; None: it is not known, or the whole file is meant.
        raw: The row as far as there is a text of it.
        is_rest: Whether nothing behind it can be read, either.
    """

    def __init__(self, message: str, source: str, row: int | None = None, raw: str = "", is_rest: bool = False) -> None:
        super().__init__(message)
        self.source = source
        self.row = row
        self.raw = raw
        self.is_rest = is_rest


class ChangedRowsError(ConnectorError, UnrecoverableError):
    """A source is another one than before: the same offsets have other rows, or it has other fields than the spout declares."""

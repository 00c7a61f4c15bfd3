"""What user code raises to fail a tuple, and what is raised at it."""

from __future__ import annotations


class FailedException(Exception):
    """Raise it in ``process`` to fail the tuple: it is replayed, the process lives on (Storm's FailedException)."""


class ReportedFailedException(FailedException):
    """The same, and the error is shown in Storm's log and UI (Storm's ReportedFailedException)."""


class ConfigError(ValueError):
    """A value of the topology's conf, or a component's declaration, is wrong; the message names it and the fix."""


class UnrecoverableError(Exception):
    """A task can't go on, and to start it again would not help: the topology ends. The message says why, and what to do."""

"""The exceptions that user code raises to fail a tuple, and those that it gets."""

from __future__ import annotations


class FailedException(Exception):
    """Raise it in ``process`` to fail the tuple: it is replayed, and the process goes on (Storm's FailedException)."""


class ReportedFailedException(FailedException):
    """Raise it like FailedException; the error is also shown in Storm's log and UI."""


class ExplainedError(Exception):
    """An exception whose message says all that one needs to know.

    It is reported without a traceback, unless another exception caused it (``raise ... from``): that one may be of user code. So a
    message that tells what a file, a database or a server said is raised ``from None``.
    """


class ConfigError(ExplainedError, ValueError):
    """A value of the topology's conf, or a component's declaration, is wrong; the message says what to write."""


class NotSetError(ConfigError):
    """A setting that every task needs is not in the conf; it may be given when the topology is submitted."""


class UnrecoverableError(ExplainedError):
    """A task can't go on, and starting it again would not help, so that the topology ends."""


class MissingMethodError(UnrecoverableError, TypeError):
    """A component's class lacks the method that its engine calls."""

"""The exit statuses of the command, for scripts that run it."""

from __future__ import annotations

import click

OK = 0
FAILED_TUPLES = 1  # tuples failed for good, or were pending at the end of a run that should have drained
USAGE = 2  # the command line, the topology or its conf is wrong; click's own status for that
NEVER_STARTED = 3  # a component's process died at each start before it had done anything
BROKE_OFF = 4  # the cluster could not continue
UNAVAILABLE = 69  # EX_UNAVAILABLE: the extra is not installed, or no Nimbus answers
TIMED_OUT = 124  # as in timeout(1)
INTERRUPTED = 130  # 128 + SIGINT, as in shells
BROKEN_PIPE = 141  # 128 + SIGPIPE
TERMINATED = 143  # 128 + SIGTERM


def fault(message: str, status: int = USAGE) -> click.ClickException:
    """Return the error that ends the command with a message, without a traceback, and with an exit status."""
    error = click.ClickException(message)
    error.exit_code = status  # type: ignore[misc]  # click reads it from the instance
    return error

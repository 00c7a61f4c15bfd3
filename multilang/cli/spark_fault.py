"""The error of ``multilang spark``."""

from __future__ import annotations

import click

from multilang.cli import exits


class SparkFault(click.ClickException):
    """A topology can't run on Spark; shown without a traceback."""

    def __init__(self, message: str, status: int = exits.USAGE) -> None:
        super().__init__(message)
        self.status = status

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        """The command's exit status."""
        return self.status

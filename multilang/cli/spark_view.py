"""The display of ``multilang spark``: a line with the progress, and the result."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from multilang.cli import exits
from multilang.cli.report import Outcome, write_json, write_tables
from multilang.cli.view import PLAIN_EVERY, console

if TYPE_CHECKING:
    from multilang.engine.status import RunStatus
    from spark_bridge.job import JobProgress, JobResult

_NAMED = 10  # failed tuples that are shown
_KINDS = 5  # kinds of errors that are shown
_LOOK = 120  # characters of the progress line


class SparkLine:
    """A line with the progress: redrawn on a terminal, printed now and then elsewhere."""

    def __init__(self, name: str, quiet: bool) -> None:
        self._name = name
        self._console = console(sys.stderr)
        self._quiet = quiet
        self._start = self._last = time.monotonic()
        self._status: Any = None
        self.last: RunStatus | None = None  # the last status

    def __enter__(self) -> SparkLine:  # noqa: PYI034 - Self is not in Python 3.10
        if not self._quiet and self._console.is_terminal:
            self._status = self._console.status(f"{self._name} (spark): starting")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def update(self, progress: JobProgress) -> None:
        """Show the progress of the round."""
        self.last = progress.status
        width = 24
        done = progress.done * width // progress.tasks if progress.tasks else width
        bar = f"{'█' * done}{'░' * (width - done)}"
        if self._status is not None:
            self.update_text(
                f"{bar} {progress.done}/{progress.tasks} tasks, round {progress.round}, {progress.acked:,} acked"
            )
        elif not self._quiet and time.monotonic() - self._last >= PLAIN_EVERY:
            self._last = time.monotonic()
            self.update_text(
                f"{progress.done}/{progress.tasks} tasks, round {progress.round}, {progress.acked:,} acked"
            )

    def update_text(self, text: str) -> None:
        """Show a text."""
        line = f"{self._name} (spark) {time.monotonic() - self._start:.0f} s: {text}"
        if self._status is not None:
            self._status.update(line[:_LOOK])
        elif not self._quiet:
            self._console.print(line)

    def message(self, text: str) -> None:
        """Print a line that stays, above the progress."""
        self._console.print(text, soft_wrap=True, markup=False, highlight=False)

    def end(self) -> None:
        """Remove the line."""
        if self._status is not None:
            self._status.stop()
            self._status = None


def _reported(result: JobResult) -> list[str]:
    """Return the kinds of errors, each once, since nobody may look into the logs of executors."""
    return [f"reported: {each}".rstrip() for each in result.errors[-_KINDS:]]


def show_result(result: JobResult, as_json: bool) -> int:
    """Show the result of a job, and return the command's exit status."""
    status = exits.FAILED_TUPLES if result.lost else exits.OK
    outcome = Outcome(result.status(), "spark", None, False, "drained", status)
    if result.lost:
        lines = [f"failed at every attempt: {each}" for each in result.failed[:_NAMED]]
        more = result.lost - len(lines)
        outcome.problem = "\n".join([*lines, *([f"and {more} more failed"] if more else []), *_reported(result)])
    elif result.errors:
        outcome.problem = "\n".join(_reported(result))
    if as_json:
        write_json(outcome)
    else:
        write_tables(outcome, console(sys.stdout))
    return status

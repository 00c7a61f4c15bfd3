"""The end of a task: everything that it holds is let go of, whatever goes wrong on the way."""

from __future__ import annotations

from contextlib import ExitStack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def close_all(*closes: Callable[[], object]) -> None:
    """Call each in turn, also when one before it has raised; what was raised is raised at the end."""
    with ExitStack() as stack:
        for close in reversed(closes):
            stack.callback(close)

"""The end of a task: everything that it holds is released, even if something fails on the way."""

from __future__ import annotations

from contextlib import ExitStack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def close_all(*closes: Callable[[], object]) -> None:
    """Call each function in turn, even if one before it raised; raise the exception at the end."""
    with ExitStack() as stack:
        for close in reversed(closes):
            stack.callback(close)

"""The open blocks of a task: tuples that it emitted and has not sent yet, for each task that gets blocks."""

from __future__ import annotations

from _thread import allocate_lock

from multilang.exchange.block import APART, LOOSE, OpenBlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from multilang.exchange.routes import Route


class _Nothing:
    """The holder of tuples without anchors, or without a message id."""

    mark = LOOSE


ALONE: Any = _Nothing()
"""The holder of tuples without anchors, or without a message id."""


class OpenBlocks:
    """A task's open blocks.

    Tuples of one block succeed or fail together. So tuples whose failure causes a replay are never in one block with
    others, and a tuple that failed before is alone: each holder has one of the marks of blocks.

    Args:
        tasks: The tasks that get blocks.
        write: Sends a block's tuples, and empties it.

    Attributes:
        by_task: The block of each task.
        dirty: Those with tuples, in the order of their first.
        writing: Whether one is being sent.
    """

    def __init__(self, tasks: Iterable[int], write: Callable[[OpenBlock], None]) -> None:
        self.by_task = {task: OpenBlock(task) for task in tasks}
        self.dirty: list[OpenBlock] = []
        self.writing = False
        self._write = write
        self._sending = allocate_lock()

    def turn(self, block: OpenBlock, route: Route, holder: Any) -> None:
        """Have a block's next tuple be one of this stream, with this holder."""
        last = block.last
        if last is None:
            self.dirty.append(block)
            block.mark = holder.mark
        elif last is not holder and (last.mark != holder.mark or holder.mark == APART):
            self.close(block)
            self.dirty.append(block)
            block.mark = holder.mark
        if block.route is not route:
            block.turn(route)
        if block.last is not holder:
            block.last = holder
            if holder is not ALONE:
                block.holders[holder] = None

    def put_apart(self, block: OpenBlock, route: Route, holders: list[Any], text: str) -> None:
        """Send a tuple that has several holders, one of which is apart, in a block of its own."""
        if block.last is not None:
            self.close(block)
        self.turn(block, route, holders[0])
        block.holders.update(dict.fromkeys(holders))
        block.mark = APART
        block.append(text)
        self.close(block)

    def close(self, block: OpenBlock) -> None:
        """Send a block that has tuples."""
        with self._sending:
            self.writing = True  # first, in case of a signal
            self.dirty.remove(block)
            self._write(block)
            self.writing = False

    def close_all(self) -> None:
        """Send all of them."""
        dirty = self.dirty
        if dirty:
            with self._sending:
                self.writing = True
                for block in dirty:
                    self._write(block)
                dirty.clear()
                self.writing = False

    def send_so_far(self, write: Callable[[OpenBlock], None]) -> None:
        """Send the present tuples by ``write``, in another thread, while the main thread may add tuples."""
        with self._sending:
            for block in self.dirty[:]:
                write(block)

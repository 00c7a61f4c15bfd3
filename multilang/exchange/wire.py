"""The calls between blocks and a task's wire, which stands above this package."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from multilang.protocol import ChildConnection

    class Output(Protocol):
        """The pipe to the parent."""

        def flush_some(self) -> bool:
            """Write as much as the pipe takes now; return True when nothing is left."""

    class Blocks(Protocol):
        """Emitted tuples in open blocks."""

        def close_blocks(self) -> None:
            """Send them, before anything is waited for."""

        def park(self) -> None:
            """Note that the main thread waits for input now."""

        def unpark(self) -> None:
            """Note that the main thread works again."""

    class Wire(Protocol):
        """The task's end of the connection to its parent."""

        connection: ChildConnection

        @property
        def output(self) -> Output:
            """The pipe that its messages go to."""

        def check_wait(self) -> None:
            """Raise LocalProtocolError if task ids can't be waited for."""

        def deliver_later(self, callback: Callable[[list[int]], None], tasks: list[int]) -> None:
            """Call a callback with task ids that are known, when the present call into the component has returned."""

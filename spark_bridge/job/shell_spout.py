"""A spout in another language that runs as it is: the driver starts its process and plays Storm's ShellSpout for it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from multilang.protocol import Emit, Sync
from multilang.runtime.task import IDLE_ROUNDS
from spark_bridge.job.errors import NotOnSparkError, SparkJobError
from spark_bridge.job.program import DiedError, Program

if TYPE_CHECKING:
    from typing import Any

    from multilang.runtime.links import Links
    from multilang.runtime.plan import TaskPlan


class ShellSpoutTask(Program):
    """One task.

    ``emitted``: the tuples since the list was last taken; ``left``: how many more tuples the spout may emit.

    A ``sync`` with ``"exhausted": true`` or ``false`` says whether more will come. Raises SparkJobError when the
    program dies, since nobody knows what it would emit after a restart, and NotOnSparkError when it can't say whether
    it has an end.
    """

    kind = "spout"
    busy_secs: float | None = None  # not known, since its process works beside this one

    def __init__(self, plan: TaskPlan, links: Links, left: float) -> None:
        super().__init__(plan, links)
        self.left = left
        self.emitted: list[tuple[Any, list[Any], str | None, int | None]] = []
        self._said: bool | None = None  # "exhausted" of the last sync
        self._idle = 0  # the number of nexts in a row that emitted nothing
        # With "local" a spout of this library says whether it is exhausted, and does not sleep when it has nothing, as
        # in the embedded cluster. Acks and fails come at the end of the round, however many ackers are configured.
        self.launch({**plan.conf, "multilang.parent": "local", "topology.acker.executors": 1})
        self._command("activate")

    @property
    def exhausted(self) -> bool:
        """True if nothing more will come."""
        if self.left <= 0:
            return True
        return self._idle >= IDLE_ROUNDS if self._said is None else self._said

    @property
    def waits(self) -> bool:
        """True if the spout, after it emitted nothing, should be asked again later."""
        return bool(self.emitted) or self._said is not None

    def ask(self) -> bool:
        """Send one ``next``, and return whether the spout emitted something."""
        before = len(self.emitted)
        self._command("next")
        if self._said is None and self.left == float("inf"):
            raise NotOnSparkError(
                f"spout {self.plan.component!r} is the program {self._command_line[0]!r}, whose sync does not say whether it "
                f'is exhausted ("exhausted": true or false): give it a source, {{{self.plan.component!r}: rdd}}, or bound it, '
                f"limits={{{self.plan.component!r}: 100_000}}"
            )
        new = len(self.emitted) - before
        self.left -= new
        if new:
            self._idle = 0
        else:
            self._idle += 1
            time.sleep(self.plan.settings.spout_wait_secs(self._idle, False))
        return bool(new)

    def source_id(self, tup_id: Any) -> Any:
        """Return the message id: a program says nothing of its items."""
        return tup_id

    def tell(self, tup_id: Any, acked: bool) -> None:
        """Tell the spout that a tuple was acked or failed. It may emit a failed one again in answer to a ``next``."""
        self._idle = 0
        self._said = None  # an ack or fail may change it
        if not acked:
            self.left += 1
        self._command("ack" if acked else "fail", tup_id)

    def close(self) -> None:
        """Deactivate and end the program, unless it died."""
        try:
            if self.conn.command is None and self.child.poll() is None:
                self._command("deactivate")
        except SparkJobError as death:
            self.links.report(self.plan, str(death))
        finally:
            super().close()

    def _command(self, name: str, *arguments: Any) -> None:
        """Send a command, and handle all messages until the program's sync."""
        conn = self.conn
        try:
            getattr(conn, name)(*arguments)
            while conn.command is not None:
                self.pump(None)
        except DiedError as death:
            raise SparkJobError(str(death)) from None

    def handle(self, message: Any) -> None:
        if isinstance(message, Sync):
            if message.exhausted is not None:
                self._said = message.exhausted
            return
        assert isinstance(message, Emit)
        self.plan.route(message)
        self.emitted.append((message.id, message.values, message.stream, message.task))
        if message.need_task_ids:
            self.answer(())  # the task ids are only known when the round has run

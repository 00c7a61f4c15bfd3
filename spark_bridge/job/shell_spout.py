"""A spout in another language that runs as it is: the driver starts its process and plays Storm's ShellSpout for it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from multilang.protocol import Emit, Sync
from multilang.protocol.errors import RemoteProtocolError
from multilang.runtime.task import IDLE_ROUNDS
from multilang.topology.errors import TopologyError
from spark_bridge.job.lives import Emitting, Lives
from spark_bridge.job.program import Program

if TYPE_CHECKING:
    from typing import Any

    from multilang.runtime.links import Links
    from multilang.runtime.plan import TaskPlan


class ShellSpoutTask(Emitting, Program):
    """One task. ``left``: how many tuples it may emit.

    A ``sync`` with ``"exhausted": true`` or ``false`` says whether more will come. A program that dies is started again.
    Raises SparkJobError when that was too often, and TopologyError when it can't say whether it has an end.
    """

    kind = "spout"
    busy_secs: float | None = None  # not known, since its process works beside this one

    def __init__(self, plan: TaskPlan, links: Links, left: float) -> None:
        Program.__init__(self, plan, links)
        Emitting.__init__(self, left)
        self._said: bool | None = None  # "exhausted" of the last sync
        self._idle = 0  # the number of nexts in a row that emitted nothing
        self._lives = Lives(plan, links)
        # With "local" a spout of this library says whether it is exhausted, and does not sleep when it has nothing, as
        # in the embedded cluster. Acks and fails come at the end of the round, however many ackers are configured.
        self._conf = {**plan.conf, "multilang.parent": "local", "topology.acker.executors": 1}
        self.launch(self._conf)
        try:
            self._command("activate")
        except BaseException:
            self.close()  # nobody else knows of this task yet
            raise

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
        lives = self._command("next")
        if lives and self._said is None and self.left == float("inf"):
            raise TopologyError(
                f"spout {self.plan.component!r} is the program {self._command_line[0]!r}, whose sync does not say whether it "
                f'is exhausted ("exhausted": true or false): give it a source, {{{self.plan.component!r}: rdd}}, or bound it, '
                f"limits={{{self.plan.component!r}: 100_000}}"
            )
        new = len(self.emitted) - before
        if new or not lives:
            self._idle = 0
        else:
            self._idle += 1
            time.sleep(self.plan.settings.spout_wait_secs(self._idle, False))
        return bool(new)

    def source_id(self, tup_id: Any) -> Any:
        """Return the message id: a program says nothing of its items."""
        return tup_id

    def tell(self, tup_id: Any, acked: bool, life: int) -> None:
        """Tell the spout that a tuple was acked or failed, unless it emitted it in an earlier life.

        It may emit a failed one again in answer to a ``next``.
        """
        if life != self._lives.number:
            return
        self._idle = 0
        self._said = None  # an ack or fail may change it
        before = len(self.emitted)
        if acked:
            self._command("ack", tup_id)
            self.bound(before)
        else:
            self._left += 1
            self._command("fail", tup_id)

    def close(self) -> None:
        """Deactivate and end the program, unless it died."""
        try:
            if self.conn.command is None and self.child.poll() is None:
                self._send("deactivate")
        except RemoteProtocolError as death:
            self.links.report(self.plan, str(death))
        finally:
            super().close()

    def _command(self, name: str, *arguments: Any) -> bool:
        """Send a command, and handle all messages until the program's sync. Return False if it died and was started again."""
        lives = True
        while True:
            try:
                self._send(name, *arguments)
                return lives
            except RemoteProtocolError as death:
                lives = False
                self._lives.end(str(death))
                self.end()
                self._idle = 0
                self._said = None
                self.launch(self._conf)
                name, arguments = "activate", ()

    def _send(self, name: str, *arguments: Any) -> None:
        conn = self.conn
        getattr(conn, name)(*arguments)
        while conn.command is not None:
            self.pump(None)

    def handle(self, message: Any) -> None:
        if isinstance(message, Sync):
            if message.exhausted is not None:
                self._said = message.exhausted
            return
        assert isinstance(message, Emit)
        self.plan.route(message)
        self._lives.last = (message.id, message.values, message.stream, message.task)
        self.emitted.append((*self._lives.last, self._lives.number))
        if message.need_task_ids:
            self.answer(())  # the task ids are only known when the round has run

"""Bolts with state, for users to subclass."""

from __future__ import annotations

from multilang.component.bolt import BasicBolt, Bolt
from multilang.component.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context

    Base = Bolt
else:
    Base = object


class Stateful(Base):
    """The common part of stateful bolts (Storm's IStatefulBolt). Subclass StatefulBolt or StatefulBasicBolt instead."""

    transformations = ["multilang.state.transform:stateful"]

    acks_by_itself = False  # a tuple is acked at a checkpoint

    _has_state: bool = False

    def init_state(self, state: Any) -> None:
        """Receive the state as it was committed last. Called after ``initialize`` and before the first tuple.

        It is called once in each task, and with ``multilang.state.alignment: exact`` again after each rollback.

        Args:
            state: The task's state: a KeyValueState, unless your provider makes another kind.
        """

    def pre_prepare(self, txid: int) -> None:
        """Act just before the state is prepared. Nothing unless overridden.

        Args:
            txid: The transaction of the checkpoint.
        """

    def pre_commit(self, txid: int) -> None:
        """Act just before the state is committed. Nothing unless overridden.

        Args:
            txid: The transaction of the checkpoint.
        """

    def pre_rollback(self) -> None:
        """Act just before prepared changes are rolled back. Nothing unless overridden."""

    def _attach(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        if not self._has_state:
            raise ConfigError(
                f"{type(self).__name__} is a stateful bolt, whose state is managed by its topology: put it into one with "
                "TopologyBuilder, or test it with run_bolt"
            )
        super()._attach(collector, conf, context)


def promise_state(bolt: Stateful) -> None:
    """Let a stateful bolt be started: the caller will call its ``init_state``."""
    bolt._has_state = True


class StatefulBolt(Stateful, Bolt):
    """A stateful bolt that anchors its emits and acks each tuple itself, as Storm's does.

    An ack takes effect at the next commit. An exception in ``process`` ends the task's process, and the state goes back
    to what was committed.
    """


class StatefulBasicBolt(Stateful, BasicBolt):
    """A stateful bolt for the common pattern: emits are anchored to the tuple, which is acked when ``process`` returns.

    An exception in ``process`` fails the tuple, but puts before it stay in the state: put last.
    """

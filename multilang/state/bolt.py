"""Bolts with state: what users subclass."""

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
    """What stateful bolts have in common (Storm's IStatefulBolt); subclass StatefulBolt or StatefulBasicBolt."""

    transformations = ["multilang.state.transform:stateful"]

    _has_state: bool = False  # set by who calls init_state

    def init_state(self, state: Any) -> None:
        """Called after ``initialize`` and before the first tuple, with the state as it was committed last.

        Once in a task's life; with ``multilang.state.alignment: exact`` again after each rollback.
        """

    def pre_prepare(self, txid: int) -> None:
        """Called just before the state is prepared."""

    def pre_commit(self, txid: int) -> None:
        """Called just before the state is committed."""

    def pre_rollback(self) -> None:
        """Called just before what was prepared is rolled back."""

    def _attach(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        if not self._has_state:
            raise ConfigError(
                f"{type(self).__name__} is a stateful bolt, whose state is managed by its topology: put it into one with "
                "TopologyBuilder, or test it with run_bolt"
            )
        super()._attach(collector, conf, context)


class StatefulBolt(Stateful, Bolt):
    """As Storm's: ``process`` anchors what it emits and acks each tuple itself; the ack takes effect at the next commit.

    An exception out of ``process`` ends the process; the state goes back to what was committed.
    """


class StatefulBasicBolt(Stateful, BasicBolt):
    """The common pattern: emits are anchored to the tuple, which is acked when ``process`` returns.

    An exception out of ``process`` fails the tuple, but what it put into the state stays there: put last.
    """

"""Ordinary components of this library around components of pystorm's."""

from __future__ import annotations

from multilang.compat.adapters import Adapter, around, own
from multilang.compat.pystorm.bolt import Bolt, TicklessBatchingBolt
from multilang.compat.pystorm.links import BoltLink, SpoutLink
from multilang.compat.pystorm.spout import Spout
from multilang.component import bolt as own_bolt
from multilang.component import spout as own_spout
from multilang.component.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from multilang.component.context import Context
    from multilang.component.streams import Stream


class BoltAdapter(Adapter, own_bolt.Bolt):
    """A bolt of pystorm's as a component of this library; ``adapted`` makes it."""

    acks_ticks = False

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self._bolt = bolt = self.made()
        link = BoltLink(bolt, self._collector, conf, context)
        bolt.initialize(conf, context)
        for name, execute in link.executors(bolt).items():
            setattr(self, name, execute)
        if isinstance(bolt, TicklessBatchingBolt):

            def hand_over() -> None:
                try:
                    bolt.process_batches()
                except Exception as error:  # noqa: BLE001 - user code: handled as pystorm does
                    link.failed(error)
                link.state.current = []

            self.set_timer(bolt.secs_between_batches, hand_over, every=bolt.secs_between_batches)


class SpoutAdapter(Adapter, own_spout.Spout):
    """A spout of pystorm's as a component of this library; see BoltAdapter."""

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self._spout = spout = self.made()
        self._link = SpoutLink(spout, self._collector, conf, context)
        spout.initialize(conf, context)

    def next_tuple(self) -> None:
        self._link.command(self._spout.next_tuple)

    def ack(self, tup_id: Any) -> None:
        if self._link.listening:  # within an emit, when there are no ackers
            self._spout.ack(tup_id)
        else:
            self._link.command(self._spout.ack, tup_id)

    def fail(self, tup_id: Any) -> None:
        self._link.command(self._spout.fail, tup_id)

    def activate(self) -> None:
        self._link.command(self._spout.activate)

    def deactivate(self) -> None:
        self._link.command(self._spout.deactivate)


def adapted(
    given: Any,
    output_fields: Sequence[str] | None = None,
    output_streams: Mapping[str, Sequence[str] | Stream] | None = None,
) -> Any:
    """Return a component of this library that runs one of pystorm's.

    >>> builder.set_bolt("count", adapted(Count, ["word", "count"])).fields_grouping("split", "word")

    Args:
        given: The class, of which each task makes its own instance, or an instance. One of this library's own is returned as it
            is, with the fields and streams given here.
        output_fields: The fields of the default stream.
        output_streams: Further streams by name.

    Raises:
        ConfigError: It is neither a bolt nor a spout of pystorm's.
    """
    component = own(given, output_fields, output_streams)
    if component is not None:
        return component
    kind = given if isinstance(given, type) else type(given)
    if issubclass(kind, Bolt):
        return around(BoltAdapter, given, output_fields, output_streams)
    if issubclass(kind, Spout):
        return around(SpoutAdapter, given, output_fields, output_streams)
    raise ConfigError(f"{kind.__name__} is neither a Bolt nor a Spout of pystorm's, so that there is nothing to run")

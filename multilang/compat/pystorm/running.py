"""Ordinary components of this library around components of pystorm's."""

from __future__ import annotations

from copy import deepcopy

from multilang.compat.pystorm.bolt import Bolt, TicklessBatchingBolt
from multilang.compat.pystorm.component import Component
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


class BoltAdapter(own_bolt.Bolt):
    """A bolt of pystorm's as a component of this library; ``adapted`` makes it.

    Args:
        given: The class, of which each task makes its own instance, or an instance.
        output_fields: The fields of the default stream.
        output_streams: Further streams by name.
    """

    acks_ticks = False

    def __init__(self, given: Any, output_fields: Any = None, output_streams: Any = None) -> None:
        self.given = given
        self.output_fields = output_fields  # type: ignore[misc]
        self.output_streams = output_streams  # type: ignore[misc]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self._bolt = bolt = _made(self.given)
        link = BoltLink(bolt, self._collector, conf, context)
        for name in ("process", "process_tick"):
            setattr(self, name, getattr(link, name))
        bolt.initialize(conf, context)
        if isinstance(bolt, TicklessBatchingBolt):

            def hand_over() -> None:
                try:
                    bolt.process_batches()
                except Exception as error:  # noqa: BLE001 - user code: handled as pystorm does
                    link.failed(error)
                link.state.current = []

            self.set_timer(bolt.secs_between_batches, hand_over, every=bolt.secs_between_batches)

    def __deepcopy__(self, memo: dict[int, Any]) -> BoltAdapter:
        return BoltAdapter(_copied(self.given, memo), self.output_fields, self.output_streams)


class SpoutAdapter(own_spout.Spout):
    """A spout of pystorm's as a component of this library; see BoltAdapter."""

    def __init__(self, given: Any, output_fields: Any = None, output_streams: Any = None) -> None:
        self.given = given
        self.output_fields = output_fields  # type: ignore[misc]
        self.output_streams = output_streams  # type: ignore[misc]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self._spout = spout = _made(self.given)
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

    def __deepcopy__(self, memo: dict[int, Any]) -> SpoutAdapter:
        return SpoutAdapter(_copied(self.given, memo), self.output_fields, self.output_streams)


def adapted(
    given: Any,
    output_fields: Sequence[str] | None = None,
    output_streams: Mapping[str, Sequence[str] | Stream] | None = None,
) -> BoltAdapter | SpoutAdapter:
    """Return a component of this library that runs one of pystorm's.

    >>> builder.set_bolt("count", adapted(Count, ["word", "count"])).fields_grouping("split", "word")

    Args:
        given: The class, of which each task makes its own instance, or an instance.
        output_fields: The fields of the default stream.
        output_streams: Further streams by name.

    Raises:
        ConfigError: It is neither a bolt nor a spout of pystorm's.
    """
    kind = given if isinstance(given, type) else type(given)
    if issubclass(kind, Bolt):
        return BoltAdapter(given, output_fields, output_streams)
    if issubclass(kind, Spout):
        return SpoutAdapter(given, output_fields, output_streams)
    raise ConfigError(f"{kind.__name__} is neither a Bolt nor a Spout of pystorm's, so that there is nothing to run")


def run(component: Component) -> None:
    """Run a component of pystorm's as the process of one task, until its input ends."""
    from multilang.component.process import run_component

    run_component(adapted(component))


def _made(given: Any) -> Any:
    return given() if isinstance(given, type) else given


def _copied(given: Any, memo: dict[int, Any]) -> Any:
    return deepcopy(given, memo) if isinstance(given, Component) else given

"""A chain as a component: in a topology it stands for its members, and in its process it runs them."""

from __future__ import annotations

from multilang.blocks.choice import acks_by_itself
from multilang.component.bolt import Bolt
from multilang.component.runner import close

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from multilang.chains.running import Running
    from multilang.component.base import Component
    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context
    from multilang.component.metrics import MetricsRegistry
    from multilang.component.streams import Stream
    from multilang.protocol.messages import Tuple


class Chain(Bolt):
    """Bolts that run in one process, one behind the other.

    Args:
        members: The bolts by their ids, sources before subscribers.
        confs: The confs of the members, in their process.
    """

    running: Running | None = None
    """Runs the members, in their process."""

    def __init__(self, members: Mapping[str, Component]) -> None:
        self.members = dict(members)
        self.wrapped = next(iter(self.members.values()))

    @property
    def acks_by_itself(self) -> bool:  # type: ignore[override]
        """True if each member acks by itself."""
        return all(acks_by_itself(member) for member in self.members.values())

    def declared_streams(self) -> dict[str, Stream]:
        return {}

    def check_start(self, conf: dict[str, Any]) -> None:
        from multilang.chains.names import VIEW

        for id, member in self.members.items():
            member.check_start({**conf, **conf[VIEW]["components"][id]["conf"]})

    def after_end(self) -> None:
        for member in self.members.values():
            member.after_end()

    def start(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> Callable[[Tuple], object]:
        """Start all members, and return the function that runs one tuple through the first."""
        self._collector = collector
        assert self.running is not None
        return self.running.start()

    def close(self) -> None:
        """Close all members, each before those behind it, which then get what it emitted last."""
        running = self.running
        if running is None:
            return
        failure: BaseException | None = None
        for member in running.members:
            if not hasattr(member.component, "_collector"):
                continue  # it was not started
            running.current = member
            try:
                close(member.component)
                running.drain()
            except (Exception, SystemExit) as error:  # noqa: BLE001 - user code: the others are closed all the same
                failure = failure or error
        if failure is not None:
            raise failure

    @property
    def context(self) -> Context:  # type: ignore[override]
        """The context of the member that works, for messages."""
        assert self.running is not None
        return self.running.working.context

    @property
    def speaker(self) -> str | None:
        """The member that works, for our own parent; None for Storm, which knows the chain alone."""
        running = self.running
        return running.working.id if running is not None and running.local else None

    @property
    def _metrics(self) -> Metrics | None:  # type: ignore[override]
        running = self.running
        if running is None:
            return None
        found = [metrics for each in running.members if (metrics := used(each.component)) is not None]
        return Metrics(found) if found else None


def used(component: Component) -> MetricsRegistry | None:
    """Return a component's metrics; None if it has none so far."""
    from multilang.component.base import used_metrics

    return used_metrics(component)


class Metrics:
    """The metrics of all members, for what reports them."""

    def __init__(self, found: list[MetricsRegistry]) -> None:
        self._found = found

    def report_if_due(self, now: float) -> None:
        """Report those that are due."""
        for each in self._found:
            each.report_if_due(now)

    def report(self) -> None:
        """Report all."""
        for each in self._found:
            each.report()

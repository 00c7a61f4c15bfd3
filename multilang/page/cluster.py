"""The pages of a cluster: its topologies and supervisors, and a page for each topology with what can be done to it."""

from __future__ import annotations

import asyncio
from threading import Lock
from typing import TYPE_CHECKING

from multilang.page.feed import Feed
from multilang.page.server import serve
from multilang.shipping.errors import ShippingError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from multilang.engine.status import RunStatus
    from multilang.page.actions import Action
    from multilang.shipping.nimbus import Nimbus

EVERY_SECS = 2.0  # between two requests to Nimbus for a topology, while somebody watches it


class Connection:
    """A connection to Nimbus that several threads use in turn, and that is opened again after an error.

    Args:
        connect: Makes the connection.
    """

    def __init__(self, connect: Callable[[], Nimbus]) -> None:
        self._connect = connect
        self._nimbus: Nimbus | None = None
        self._lock = Lock()

    def ask(self, question: Callable[[Nimbus], Any]) -> Any:
        """Return the answer to a question. Raises what the question and the connection raise."""
        with self._lock:
            if self._nimbus is None:
                self._nimbus = self._connect()
            try:
                return question(self._nimbus)
            except ShippingError:
                self._nimbus.close()  # it may be closed; the next request opens a new connection
                self._nimbus = None
                raise

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._nimbus is not None:
                self._nimbus.close()


class ClusterPages:
    """The topologies and supervisors that the pages of a cluster show."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._feeds: dict[str, Feed] = {}
        self._following: set[asyncio.Task[None]] = set()

    def feed(self, name: str) -> Feed:
        """Return the feed of a topology."""
        if name not in self._feeds:

            async def ask() -> RunStatus:
                found: RunStatus = await asyncio.to_thread(self._connection.ask, lambda nimbus: nimbus.status(name))
                return found

            feed = self._feeds[name] = Feed(ask, EVERY_SECS)
            self._following.add(asyncio.get_running_loop().create_task(feed.follow()))
        return self._feeds[name]

    async def summary(self) -> Any:
        """Return Storm's ClusterSummary."""
        return await asyncio.to_thread(self._connection.ask, lambda nimbus: nimbus.summary())

    def actions(self, name: str) -> dict[str, Action]:
        """Return what can be done with a topology."""
        from multilang.page.actions import Action

        def asked(question: Callable[[Nimbus], object]) -> Callable[[], object]:
            return lambda: self._connection.ask(question)

        found = (
            Action("Activate", f"Let the spouts of {name} emit again?", asked(lambda nimbus: nimbus.activate(name))),
            Action(
                "Deactivate",
                f"Let the spouts of {name} emit nothing more, until it is activated?",
                asked(lambda nimbus: nimbus.deactivate(name)),
            ),
            Action(
                "Rebalance",
                f"Distribute the tasks of {name} over the workers again? Its spouts pause for its message timeout.",
                asked(lambda nimbus: nimbus.rebalance(name)),
            ),
            Action(
                "Kill",
                f"End {name} for good? Its spouts stop now, and its workers after its message timeout.",
                asked(lambda nimbus: nimbus.kill(name)),
            ),
        )
        return {each.name: each for each in found}


def serve_cluster(connect: Callable[[], Nimbus], host: str, port: int, ready: Callable[[str], object]) -> None:
    """Serve the pages of a cluster until a signal ends it.

    Args:
        connect: Connects to Nimbus.
        host: The address to listen at.
        port: The port; when it is taken, one of the next 99; 0 for any free one.
        ready: Called with the address of the page.

    Raises:
        ConfigError: NiceGUI is not installed, or no port is free.
    """
    connection = Connection(connect)
    pages = ClusterPages(connection)

    def build() -> None:
        from nicegui import ui

        from multilang.page.cluster_view import ClusterView
        from multilang.page.view import RunView, prefers_dark

        @ui.page("/")
        async def index() -> None:
            await ui.context.client.connected()
            view = ClusterView(pages.summary, await prefers_dark())
            await view.update()

        @ui.page("/topology/{name}")
        async def topology(name: str) -> None:
            await ui.context.client.connected()
            feed = pages.feed(name)
            feed.watch()
            ui.context.client.on_delete(feed.unwatch)
            RunView(feed, pages.actions(name), await prefers_dark(), "/", name)

    async def beside(_server: Any) -> None:
        await asyncio.Event().wait()

    try:
        serve(host, port, build, ready, beside)
    finally:
        connection.close()

"""The pages of a cluster: its topologies and supervisors, and a page for each topology with what can be done to it."""

from __future__ import annotations

import asyncio
from collections import deque
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from multilang.page.feed import MAX_LINES, Feed, LogLine
from multilang.page.server import serve
from multilang.shipping.errors import ShippingError
from multilang.shipping.log_records import RecordReader
from multilang.shipping.nimbus import nimbus_conf
from multilang.shipping.worker_logs import FollowedLogviewer, followed

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from multilang.engine.status import RunStatus
    from multilang.page.actions import Action
    from multilang.shipping.log_records import Record
    from multilang.shipping.nimbus import Nimbus
    from multilang.shipping.worker_logs import FollowedFile

EVERY_SECS = 2.0  # between two requests to Nimbus for a topology, while somebody watches it
LOGVIEWER_SECS = 10.0  # between two looks at logs that a logviewer shows, each of which downloads them


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


class _WorkersLog:
    """The lines that a topology's components log, from all of its workers.

    Args:
        connection: The connection to Nimbus.
        name: The topology's name.
    """

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._name = name
        self._id = ""
        self._conf: dict[str, Any] = {}
        self._sources: dict[str, tuple[FollowedFile | FollowedLogviewer, RecordReader]] = {}
        self._due = 0.0

    def lines(self) -> list[LogLine]:
        """Return the lines since the last call, the last ones of what there was before the first.

        Raises ShippingError.
        """
        if monotonic() < self._due:
            return []
        info = self._connection.ask(lambda nimbus: nimbus.topology(self._name))
        if info.id != self._id:
            self._conf = self._connection.ask(nimbus_conf)
            self._id, self._sources = info.id, {}
        for where, source in followed(info, self._conf).items():
            self._sources.setdefault(where, (source, RecordReader()))
        is_remote = any(isinstance(source, FollowedLogviewer) for source, _ in self._sources.values())
        self._due = monotonic() + (LOGVIEWER_SECS if is_remote else 0.0)
        found: list[tuple[str, Record]] = []
        for where, (source, reader) in self._sources.items():
            own: deque[tuple[str, Record]] = deque(maxlen=MAX_LINES)
            is_whole = True
            for lines in source.every():
                is_whole = is_whole and not lines
                own.extend(
                    (where, each) for each in reader.add(lines) if each.is_own or each.level in ("warn", "error")
                )
            if is_whole:  # nothing has followed the last record since the last look
                own.extend((where, each) for each in reader.rest() if each.is_own or each.level in ("warn", "error"))
            found += own
        return [
            LogLine(
                level=each.level,
                text=each.text,
                time=each.time,
                component=each.component,
                task=each.task,
                where=where if len(self._sources) > 1 else "",
            )
            for where, each in sorted(found, key=lambda each: each[1].time)
        ]


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

            log = _WorkersLog(self._connection, name)
            feed = self._feeds[name] = Feed(ask, EVERY_SECS, lambda: asyncio.to_thread(log.lines))
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
        from multilang.page.view import RunView, viewer

        @ui.page("/")
        async def index() -> None:
            await ui.context.client.connected()
            view = ClusterView(pages.summary, await viewer())
            await view.update()

        @ui.page("/topology/{name}")
        async def topology(name: str) -> None:
            await ui.context.client.connected()
            feed = pages.feed(name)
            feed.watch()
            ui.context.client.on_delete(feed.unwatch)
            RunView(feed, pages.actions(name), await viewer(), "/", name)

    async def beside(_server: Any) -> None:
        await asyncio.Event().wait()

    try:
        serve(host, port, build, ready, beside)
    finally:
        connection.close()

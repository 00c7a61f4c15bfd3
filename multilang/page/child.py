"""The process that serves the page of a run in its parent process.

Each line that it writes to its standard output is a request, and the parent answers each by a line of JSON: the
status, or null, with the new lines of the log. The first line that it writes is the page's address. When its standard input ends, the run is over.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import TYPE_CHECKING

from multilang.component.errors import ConfigError
from multilang.engine.status import RunStatus
from multilang.page.feed import Feed, LogLine
from multilang.page.server import serve

if TYPE_CHECKING:
    from typing import Any

LAST_LOOK_SECS = 1.5  # for browsers to fetch the last status, before the server ends


class Parent:
    """The run in the parent process."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # whatever else prints must not break the conversation
        self._answers: asyncio.Queue[str] = asyncio.Queue()
        self.has_ended = asyncio.Event()
        self.feed = Feed(self._ask)

    def send(self, line: str) -> None:
        """Write a line to the parent."""
        self._out.write(line + "\n")
        self._out.flush()

    async def _ask(self) -> RunStatus | None:
        self.send("status")
        line = await self._answers.get()
        if not line:
            self.has_ended.set()
            return None
        document = json.loads(line)
        if "error" in document:
            raise RuntimeError(document["error"])
        return self._taken(document)

    def _taken(self, document: dict[str, Any]) -> RunStatus | None:
        """Take the lines of the log, and return the status."""
        self.feed.take_log([LogLine(**each) for each in document["log"]])
        status = document["status"]
        return None if status is None else RunStatus.from_json(status)

    async def run(self, _server: Any) -> None:
        """Follow the run until it is over."""
        loop = asyncio.get_running_loop()
        reading = asyncio.StreamReader(limit=1 << 30)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reading), sys.stdin)
        following = asyncio.create_task(self.feed.follow())
        while line := await reading.readline():
            text = line.decode()
            if text.startswith("last "):
                if (status := self._taken(json.loads(text[5:]))) is not None:
                    self.feed.take(status)
            else:
                self._answers.put_nowait(text)
        self._answers.put_nowait("")
        following.cancel()
        self.feed.problem = ""
        self.feed.end()
        await asyncio.sleep(LAST_LOOK_SECS)


def main() -> None:
    """Serve the page; the arguments are the address and the port."""
    host, port = sys.argv[1], int(sys.argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
    parent = Parent()

    def build() -> None:
        from nicegui import ui

        from multilang.page.view import RunView, viewer

        @ui.page("/")
        async def index() -> None:
            await ui.context.client.connected()
            parent.feed.watch()
            ui.context.client.on_delete(parent.feed.unwatch)
            RunView(parent.feed, {}, await viewer())

    try:
        serve(host, port, build, lambda url: parent.send(json.dumps({"url": url})), parent.run)
    except ConfigError as error:
        parent.send(json.dumps({"error": str(error)}))


if __name__ == "__main__":
    main()

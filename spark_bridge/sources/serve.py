"""A live source for spouts in other processes: the driver's end of the socket."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
import time
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as NotYet
from threading import Condition
from typing import TYPE_CHECKING

from multilang.component.errors import ChangedRowsError, ConnectorError, SourceUnavailable
from multilang.helpers.extras import imported
from multilang.listening.accepting import Connection, Listener, bind
from multilang.listening.loops import LoopThread
from spark_bridge.sources.live import RDDSource, Workers
from spark_bridge.sources.served import MAX_REQUEST, SECRET, STALLED_SECS, Channel, ServedSource, secret

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Any

    from pyspark import RDD
    from pyspark.sql import DataFrame

    from spark_bridge.sources.blocks import Block

MAX_CLIENTS = 256
MAX_ANONYMOUS = 64  # unauthenticated connections; for a new one, the oldest is closed
_AUTHENTICATE_SECS = 10.0  # for the whole handshake, however many bytes it comes in
_STILL_SECS = 5.0  # between two messages that the work continues
GRACE_SECS = 60.0  # time for a disconnected group with rows left to reconnect, as when its worker is restarted
_LOOK_SECS = 0.5  # between two checks of the progress


def serve(
    rows: RDD[Any] | DataFrame | RDDSource,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    fields: Sequence[str] | None = None,
    name: str | None = None,
    secret_variable: str = SECRET,
    secret_file: str | None = None,
    stalled_secs: float = STALLED_SECS,
) -> Served:
    """Make the rows reachable for spouts in other processes, at ``served.url``, until ``served.close()``.

    Args:
        rows: The RDD, DataFrame or RDDSource.
        host: The address to listen on; by default, only this machine can connect.
        port: The port to listen on; 0: any free one.
        fields: The names of a row's values, as for RDDSource.
        name: The source's name, as for RDDSource.
        secret_variable: The environment variable that has the secret. If it is not set, a secret is made and set there,
            for the processes that this one starts.
        secret_file: The file that has the secret instead.
        stalled_secs: How many seconds a client may leave an answer unread before it is disconnected.

    Returns:
        The served source.

    Raises:
        ConnectorError: The secret can't be read or is too short, or a column's type has no JSON form.
    """
    if secret_file is None and not os.environ.get(secret_variable):
        os.environ[secret_variable] = secrets.token_hex(32)
    key = secret(secret_variable, secret_file)
    source = rows if isinstance(rows, RDDSource) else RDDSource(rows, fields=fields, name=name)
    return Served(source, host, port, key, secret_variable, secret_file, stalled_secs)


class Served:
    """A source that is being served. Each client has a thread here, and at most one block on its way to it.

    Clients read for groups: a spout is a group, or all spouts that share a ``group=``. Each group gets every row, and
    the groups' acks are independent of each other.

    Attributes:
        rdd_source: The source that is served.
        host: The address that it listens on.
        port: The port that it listens on.
    """

    def __init__(
        self,
        source: RDDSource,
        host: str,
        port: int,
        key: bytes,
        secret_variable: str,
        secret_file: str | None,
        stalled_secs: float,
    ) -> None:
        self.rdd_source = source
        self._key = key
        self._secret_variable = secret_variable
        self._secret_file = secret_file
        self._stalled_secs = stalled_secs
        self._changed = Condition()
        self._groups: dict[str, dict[int, tuple[int, bool]]] = {}  # by partition: its watermark, and whether it is done
        self._readers: dict[Channel, str] = {}  # the group for which a client reads
        self._left: dict[str, float] = {}  # when a client of the group disconnected last
        self._clients = Workers(MAX_ANONYMOUS + MAX_CLIENTS, "clients")
        self._workers = Workers(MAX_CLIENTS, "blocks")
        self._closed = False
        self._socket = bind(host, port)
        self.host, self.port = host, self._socket.getsockname()[1]
        self._loop = LoopThread("serve")
        self._listener = self._loop.run(self._listen())

    @property
    def url(self) -> str:
        """The URL for spouts: ``served://HOST:PORT``."""
        return f"served://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def source(self) -> ServedSource:
        """The source for ``PartitionSpout``, in any process that has the secret in its environment or in the same
        file.
        """
        return ServedSource(self.url, secret_variable=self._secret_variable, secret_file=self._secret_file)

    @property
    def watermarks(self) -> dict[int, int]:
        """Partition -> how many rows the fastest group has acked without a gap, without unreported partitions."""
        with self._changed:
            found: dict[int, int] = {}
            for progress in self._groups.values():
                for partition, (watermark, _) in progress.items():
                    found[partition] = max(watermark, found.get(partition, 0))
            return found

    @property
    def acked(self) -> int:
        """The number of acked rows, without those after a gap."""
        return sum(self.watermarks.values())

    @property
    def done(self) -> bool:
        """True if every row is acked by one group, and by all that read at the moment or did so until a minute ago."""
        return self._done() == self.rdd_source.partitions

    def _done(self) -> int:
        """Return the number of done partitions of the slowest group among those that are waited for."""
        with self._changed:
            done = {group: sum(whole for _, whole in progress.values()) for group, progress in self._groups.items()}
            since = time.monotonic() - GRACE_SECS
            waited = {*self._readers.values(), *(group for group, left in self._left.items() if left > since)}
            return min((done[group] for group in waited), default=max(done.values(), default=0))

    def wait(self, timeout: float | None = None, progress: bool | None = None) -> None:
        """Wait until every row of the RDD is acked by all groups that read it.

        A group that disconnected with rows left is waited for another minute, since its worker may be restarted.

        Args:
            timeout: The longest wait in seconds; None: without a limit.
            progress: Whether to show a bar on standard error (needs rich); None: if standard error is a terminal.

        Raises:
            ConnectorError: The rows can't be read, or the source was closed.
            TimeoutError: The time is over; the text has the progress.
        """
        end = None if timeout is None else time.monotonic() + timeout
        with _bar(self, progress) as bar, self._changed:
            while not self.done:
                if self.rdd_source.failed is not None:
                    raise self.rdd_source.failed
                if self._closed:
                    raise ConnectorError(f"{self.url} was closed before every row was acked: {self._so_far()}")
                left = _LOOK_SECS if end is None else min(_LOOK_SECS, end - time.monotonic())
                if left <= 0:
                    raise TimeoutError(f"not every row was acked after {timeout:g} s: {self._so_far()}")
                self._changed.wait(left)
                bar.show(self._done(), self.acked)
            bar.show(self._done(), self.acked)

    def close(self) -> None:
        """Stop serving, disconnect all clients, and let the executors drop what was persisted."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
        self._loop.close(self._end)
        self._clients.shutdown()
        self._workers.shutdown()
        self.rdd_source.close()
        with self._changed:
            self._changed.notify_all()

    def __enter__(self) -> Served:  # noqa: PYI034  # Self is not in typing of Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _so_far(self) -> str:
        return f"{self._done()} of {self.rdd_source.partitions} partitions are done, {self.acked} rows acked"

    # ---- the threads ----

    async def _listen(self) -> Listener:
        return Listener(
            self._socket,
            self._serve,
            anonymous=MAX_ANONYMOUS,
            admitted=MAX_CLIENTS,
            anonymous_secs=min(_AUTHENTICATE_SECS, self._stalled_secs),
            greets=True,
        )

    async def _end(self) -> None:
        self._listener.stop()
        self._socket.close()
        await self._listener.close()

    async def _serve(self, sock: socket.socket, connection: Connection) -> None:
        """Have threads serve a connection. Each releases its channel at its end, also if the caller waits no more."""
        channel = Channel(sock, min(_AUTHENTICATE_SECS, self._stalled_secs))
        connection.end = channel.close
        try:
            await asyncio.wrap_future(self._clients.submit(self._prove, channel))
            if connection.admit():
                await asyncio.wrap_future(self._clients.submit(self._converse, channel))
            else:
                channel.release()
        except ConnectorError:
            pass  # the client is closed, silent, or without the secret, so that an answer is pointless
        except RuntimeError:  # no thread is left for it
            channel.release()

    def _prove(self, channel: Channel) -> None:
        try:
            channel.prove(self._key, first=True)
        except BaseException:
            channel.release()
            raise

    def _converse(self, channel: Channel) -> None:
        try:
            channel.patience(self._stalled_secs)
            while True:
                request, _ = channel.receive(MAX_REQUEST)
                self._answer(channel, request)
        finally:
            with self._changed:
                group = self._readers.pop(channel, None)
                if group is not None:
                    self._left[group] = time.monotonic()
                self._changed.notify_all()
            channel.release()

    def _answer(self, channel: Channel, request: dict[str, Any]) -> None:
        try:
            answer, data = self._handled(channel, request)
        except ConnectorError as error:
            kinds = {ChangedRowsError: "changed", SourceUnavailable: "unavailable"}
            answer, data = {"error": str(error), "kind": kinds.get(type(error), "")}, b""
        except (KeyError, TypeError, ValueError, OverflowError) as error:  # OverflowError for 1e999
            answer, data = {"error": f"the request {request!r:.200} is not understood: {error!r}"}, b""
        channel.send(answer, data)

    def _handled(self, channel: Channel, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        source = self.rdd_source
        operation = request["op"]
        if operation == "block":
            block = self._block(channel, int(request["partition"]), int(request["offset"]))
            if block is None:
                return {"end": True}, b""
            chains = {"before": block.before.hex(), "chain": block.chain.hex()}
            return {"start": block.start, "rows": block.rows, "last": block.last, **chains}, block.data
        if operation == "soon":
            source.soon(int(request["partition"]), int(request["offset"]))
            return {}, b""
        if operation == "report":
            self._note(self._group_of(channel, request), request["progress"])
            return {}, b""
        if operation == "progress":
            group = self._group_of(channel, request)
            with self._changed:
                return {"progress": [(each, mark) for each, (mark, _) in self._groups[group].items()]}, b""
        if operation == "describe":
            about = {"name": source.name, "fields": list(source.fields), "partitions": source.partitions}
            return {**about, "block_rows": source.block_rows, "identity": source.identity}, b""
        raise ValueError(f"no operation {operation!r}")

    def _block(self, channel: Channel, partition: int, offset: int) -> Block | None:
        if offset < 0:
            raise ValueError(f"no offset {offset}")
        try:
            future = self._workers.submit(self.rdd_source.block, partition, offset)
            while True:
                try:
                    return future.result(_STILL_SECS)
                except NotYet:
                    if future.done():
                        return future.result()
                    channel.send({"wait": True})
        except (CancelledError, RuntimeError):
            if not self._closed:
                raise
            raise SourceUnavailable(f"{self.url} was closed") from None

    def _group_of(self, channel: Channel, request: dict[str, Any]) -> str:
        group = request.get("group", "")
        if not isinstance(group, str):
            raise TypeError(f"no group {group!r}")
        with self._changed:
            self._groups.setdefault(group, {})
            self._readers[channel] = group
        return group

    def _note(self, group: str, progress: list[list[Any]]) -> None:
        for partition, watermark, done in progress:
            if type(partition) is not int or not 0 <= partition < self.rdd_source.partitions:
                raise ValueError(f"no partition {partition}")
            with self._changed:
                known, whole = self._groups[group].get(partition, (0, False))
                self._groups[group][partition] = (max(int(watermark), known), whole or bool(done))
                if done and not whole:
                    self.rdd_source.finished(partition)
                self._changed.notify_all()


class _Bar:
    """A progress bar that shows nothing."""

    def show(self, done: int, acked: int) -> None:
        """Show the progress."""

    def __enter__(self) -> _Bar:  # noqa: PYI034
        return self

    def __exit__(self, *_: object) -> None:
        pass


class _RichBar(_Bar):
    """A progress bar with partitions done, rows acked and the time."""

    def __init__(self, partitions: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            TextColumn("partitions"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rows]:,} rows acked"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task("", total=partitions, rows=0)

    def show(self, done: int, acked: int) -> None:
        self._progress.update(self._task, completed=done, rows=acked)

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


def _bar(served: Served, wanted: bool | None) -> _Bar:
    if wanted is False or (wanted is None and not sys.stderr.isatty()):
        return _Bar()
    try:
        imported("rich", "cli", "the progress bar", error=ConnectorError)
    except ConnectorError:
        if wanted:
            raise
        return _Bar()
    return _RichBar(served.rdd_source.partitions)

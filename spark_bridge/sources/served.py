"""A live source seen from a spout's process, which asks the driver for one block after the other."""

from __future__ import annotations

from multilang.component.errors import ChangedRowsError, ConnectorError, SourceUnavailable
from spark_bridge.sources.blocks import Block, Chains, chain_of
from spark_bridge.sources.blocksource import BlockSource
from spark_bridge.sources.identity import Comparison, Mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from spark_bridge.sources.channel import Channel
    from spark_bridge.sources.source import Progress


class ServedSource(BlockSource):
    """The source that ``serve`` serves at ``served://HOST:PORT``.

    It connects when something is asked of it, and again after the connection was lost. The driver may have been started
    anew meanwhile, if it gives the same rows.

    Args:
        url: The URL, as ``served.url`` has it.
        secret_variable: The environment variable that has the secret.
        secret_file: The file that has the secret instead. By default it is the one that the topology's conf names as
            ``multilang.source.secret.file``, if it names one.

    Raises:
        ConnectorError: ``url`` is not of that form.
    """

    asks = True

    def __init__(
        self, url: str, *, secret_variable: str = "MULTILANG_SOURCE_SECRET", secret_file: str | None = None
    ) -> None:
        super().__init__()
        host, colon, port = url.removeprefix("served://").rstrip("/").rpartition(":")
        if not url.startswith("served://") or not colon or not port.isdecimal():
            raise ConnectorError(f"{url!r} is not a served source; write served://HOST:PORT, as served.url has it")
        self.url = url
        self._host = host.strip("[]")
        self._port = int(port)
        self._secret_variable = secret_variable
        self._secret_file = secret_file
        self._file_of_conf: str | None = None
        self._group = ""
        self._reads = False  # whether the driver was told for which group this source reads
        self._channel: Channel | None = None
        self._about: dict[str, Any] | None = None
        self._chains: Chains | None = None
        self._closing = False
        self._driver: str | None = None  # the identity of what the driver serves
        self._reported: dict[int, Progress] = {}  # kept for a driver that is started anew and does not know it

    def configure(self, conf: Mapping[str, Any]) -> None:
        from multilang.settings import SECRET_FILE

        file = conf.get(SECRET_FILE)
        if file is not None and (not isinstance(file, str) or not file):
            raise ConnectorError(f"{SECRET_FILE} is {file!r}; write the path of a file that has the secret")
        self._file_of_conf = file

    def follow(self, group: str) -> None:
        self._group = group

    @property
    def name(self) -> str:
        return self._described()["name"]  # type: ignore[no-any-return]

    @property
    def identity(self) -> str | None:
        self._described()
        return self._driver

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(self._described()["fields"])

    @property
    def partitions(self) -> int:
        return self._described()["partitions"]  # type: ignore[no-any-return]

    @property
    def block_rows(self) -> int:
        return self._described()["block_rows"]  # type: ignore[no-any-return]

    def block(self, partition: int, index: int) -> Block | None:
        answer, data = self._ask({"op": "block", "partition": partition, "index": index})
        if answer.get("end"):
            return None
        before, chain = bytes.fromhex(answer["before"]), bytes.fromhex(answer["chain"])
        if chain_of(before, data) != chain:
            raise ConnectorError(f"a block of partition {partition} from {self.url} does not have its own checksum")
        block = Block(index, answer["rows"], before, chain, answer["last"], data)
        assert self._chains is not None
        self._chains.check(partition, block)
        return block

    def soon(self, partition: int, offset: int) -> None:
        self._ask({"op": "soon", "partition": partition, "index": offset // self.block_rows})

    def report(self, progress: Sequence[Progress]) -> None:
        news = {each.partition: each for each in progress}
        self._reported.update(news)
        self._reads = True
        self._ask(_report(news.values(), self._group))

    def keep_in_touch(self) -> None:
        self._ask({"op": "describe"})

    def progress(self) -> dict[int, int]:
        self._reads = True
        answer, _ = self._ask({"op": "progress", "group": self._group})
        return {int(partition): int(watermark) for partition, watermark in answer["progress"]}

    def close(self) -> None:
        super().close()
        self._closing = True
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def __deepcopy__(self, memo: object) -> ServedSource:
        return _remade(self.url, self._secret_variable, self._secret_file)  # each copy has its own connection

    def __reduce__(self) -> Any:
        return _remade, (self.url, self._secret_variable, self._secret_file)  # without the connection and the secret

    def _described(self) -> dict[str, Any]:
        if self._about is None:
            self._connected()
        assert self._about is not None
        return self._about

    def _ask(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        channel = self._connected()
        try:
            return self._exchange(channel, request)
        except SourceUnavailable as error:
            self._channel = None
            channel.release()
            raise SourceUnavailable(f"{self.url}: {error}") from None

    def _exchange(self, channel: Channel, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        from spark_bridge.sources.channel import MAX_ANSWER, STALLED_SECS

        channel.send(request)
        while True:
            answer, data = channel.receive(MAX_ANSWER, STALLED_SECS)
            if not answer.get("wait"):  # else the driver still works on it
                break
        if "error" in answer:
            kind = {"changed": ChangedRowsError, "unavailable": SourceUnavailable}.get(
                answer.get("kind", ""), ConnectorError
            )
            raise kind(answer["error"])
        return answer, data

    def _connected(self) -> Channel:
        if self._channel is not None:
            return self._channel
        from spark_bridge.sources.channel import connect, secret

        self._closing = False
        file = self._secret_file or self._file_of_conf
        channel = connect(self._host, self._port, secret(self._secret_variable, file), secret_file=file)
        try:
            about, _ = self._exchange(channel, {"op": "describe"})
            identity = about.pop("identity", None)
            self._check(about)
            if self._driver not in (None, identity):
                self._compare(channel)
            self._driver = identity
            if self._reads:  # also without any progress, so that the driver goes on waiting for the group
                self._exchange(channel, _report(self._reported.values(), self._group))
        except SourceUnavailable as error:
            channel.release()
            raise SourceUnavailable(f"{self.url}: {error}") from None
        except BaseException:
            channel.release()
            raise
        if self._closing:
            channel.release()
            raise SourceUnavailable(f"{self.url} was closed here")
        self._channel = channel
        return channel

    def _compare(self, channel: Channel) -> None:
        """Check that a driver that was started anew has the same rows, before it is told that they are acked."""
        assert self._chains is not None
        assert self._about is not None
        chains, self._channel = self._chains, channel
        self._decoded.clear()
        try:
            newest = chains.newest()
            for partition, index in newest.items():
                if self.block(partition, index) is None:
                    raise ChangedRowsError(
                        f"partition {partition} of {self.url} ends before block {index} now, which was read before; serve the "
                        "same RDD"
                    )
            # The chains of partitions that are read for the comparison must not count as seen.
            self._chains = Chains(self._about["name"], self._about["block_rows"])
            unseen = {each: told for each, told in self._reported.items() if each not in newest}
            marks = {each: Mark(told.watermark, told.total) for each, told in unseen.items()}
            Comparison(self, marks, "this topology", "another topology").finish()
            for partition, told in unseen.items():
                if told.done and self.read(partition, told.watermark, 1):
                    raise ChangedRowsError(
                        f"partition {partition} of {self.url} goes on now behind its end, which was at row {told.watermark}; "
                        "serve the same RDD, or begin a new topology for what is new"
                    )
        finally:
            self._channel, self._chains = None, chains
            self._decoded.clear()

    def _check(self, about: dict[str, Any]) -> None:
        if self._about is None:
            self._about = about
            self._chains = Chains(about["name"], about["block_rows"])
        elif about != self._about:
            raise ChangedRowsError(
                f"{self.url} serves {about} now and served {self._about} before; serve the same RDD under the same name="
            )


def _report(progress: Iterable[Progress], group: str) -> dict[str, Any]:
    told = [[each.partition, each.watermark, each.done] for each in progress]
    return {"op": "report", "group": group, "progress": told}


def _remade(url: str, secret_variable: str, secret_file: str | None) -> ServedSource:
    return ServedSource(url, secret_variable=secret_variable, secret_file=secret_file)

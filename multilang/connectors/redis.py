"""A Redis Stream as a sink (extra ``redis``). The source is multilang.queues.RedisStreamSpout.

Guarantee: **at least once**. Tuples are acked when Redis has added their entries, all of a batch in one step. On every engine.
"""

from __future__ import annotations

from multilang.component.batching import LingeringBolt
from multilang.component.errors import ConfigError, ConnectorError
from multilang.connectors.records import as_text, made_of, record
from multilang.store.errors import StateError
from multilang.store.redis_access import settings, with_access
from multilang.store.redis_client import REQUIRES, connect, place, translated_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from multilang.component.context import Context
    from multilang.protocol.messages import Tuple

_WHAT = "a sink of a Redis Stream"
_PATIENCE_SECS = 5.0  # with a Redis that does not answer; then the tuples fail


class RedisStreamSink(LingeringBolt):
    """A bolt that adds each tuple as an entry (XADD); see the module.

    The values become text: text as it is, all else as JSON. A value that is None is left out, so that a RedisStreamSpout reads
    None again.

    Args:
        stream: The stream's name. It is made if there is none.
        fields: The tuple's fields that are the entry's; None: all.
        most: About how many entries the stream keeps, the newest; None: all. Entries that nobody has read yet are removed, too.
        host: The server's host.
        port: The server's port.
        database: The number of the database.
        timeout: Milliseconds that an answer may take.
        access: The credentials, if the server authenticates its clients, see RedisStreamSpout.
    """

    linger_secs = 0.005
    requires: Mapping[str, str] = REQUIRES

    def __init__(
        self,
        stream: str,
        fields: Sequence[str] | None = None,
        most: int | None = None,
        host: str = "localhost",
        port: int = 6379,
        database: int = 0,
        timeout: int = 2000,
        access: Mapping[str, Any] | None = None,
    ) -> None:
        if type(stream) is not str or not stream:
            raise ConfigError(f"stream is {stream!r}; use its name, as text")
        if most is not None and (type(most) is not int or most < 1):
            raise ConfigError(f"most is {most!r}; use a number of entries from 1, or None")
        self.stream = stream
        self.fields = None if fields is None else list(fields)
        self.most = most
        self.settings = settings(host, port, database, timeout, access)
        self._where = f"stream {stream!r} in {place(self.settings)}"

    def check_start(self, conf: dict[str, Any]) -> None:
        """Ask Redis once whether it is there, and whether the stream is one."""
        super().check_start(conf)
        client = connect(with_access(conf, self.settings), _WHAT, _PATIENCE_SECS)
        try:
            with translated_errors(self._where, "the sink's host and port"):
                kind = client.type(self.stream).decode()
        finally:
            client.close()
        if kind not in ("none", "stream"):
            raise ConfigError(f"{self._where} is a {kind}; name another key")

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self._client = connect(with_access(conf, self.settings), _WHAT, _PATIENCE_SECS)

    def process_batch(self, key: None, tups: list[Tuple]) -> None:
        _, entries = made_of(self, tups, self._entry, self._where)
        if not entries:
            return
        try:
            with translated_errors(self._where), self._client.pipeline(transaction=True) as pipeline:
                for entry in entries:
                    pipeline.xadd(self.stream, entry, maxlen=self.most, approximate=True)
                pipeline.execute()
        except StateError as problem:
            raise ConnectorError(f"{problem}; the tuples fail, and are replayed") from None

    def close(self) -> None:
        if hasattr(self, "_client"):
            self._client.close()

    def _entry(self, tup: Tuple) -> dict[str, str]:
        row = record(tup, self.fields)
        found = {field: as_text(value) for field, value in row.items() if value is not None}
        if not found:
            raise ConnectorError(f"an entry has at least one value, and all of {tup.values!r:.80} are None")
        return found

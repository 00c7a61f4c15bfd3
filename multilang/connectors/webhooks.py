"""HTTP as a source and a sink: what others POST, and POSTs to others. By the standard library.

WebhookSpout, guarantee: **what was answered with 200 is done**: a POST is answered when its tuple is acked. It is answered
503 when the tuple fails, takes too long, or too many wait, and not at all when the task dies: the sender must send it again
then, so at least once by the sender. On Storm and the embedded cluster with processes or in one process.

WebhookSink, guarantee: **at least once**: a tuple is acked when its POST was answered with 2xx, and fails otherwise, so that
it is replayed. On every engine.
"""

from __future__ import annotations

from collections import deque
from ipaddress import ip_address

from multilang.component.batching import LingeringBolt
from multilang.component.errors import ConfigError, ConnectorError
from multilang.component.spout import Spout
from multilang.connectors.records import made_of, record
from multilang.helpers.masked import masked_text
from multilang.helpers.secret import Secret
from multilang.protocol.codec import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future
    from typing import Any

    from multilang.component.context import Context
    from multilang.connectors.webhook_server import Post
    from multilang.protocol.messages import Tuple

_MOST_READ = 1 << 16  # bytes of an answer's body
_MOST_ANSWER = 1 << 20  # bytes of an answer with its head
_QUIET_SECS = 10.0  # before the same error is reported again


class WebhookSpout(Spout):
    """A spout of the bodies that are sent by POST; see the module.

    The task with index *i* listens at port + *i*. Pages in browsers are refused, by their ``Origin``.

    Args:
        port: The port of the first task.
        host: The address to listen at. Others than loopback need a ``secret``.
        path: The path of the requests.
        secret: What a request must send as ``Authorization: Bearer ...``, better as its place: ``{"env": NAME}``.
        json: Whether a body is JSON, whose value is the tuple's; otherwise it is text in UTF-8.
        field: The name of the field.
        most: The most tuples that are under way; further requests are answered 503.
        max_body: The most bytes of a body.
        answer_secs: Seconds after which a request whose tuple is neither acked nor failed is answered 503.
    """

    fails_alone = True

    def __init__(
        self,
        port: int,
        host: str = "127.0.0.1",
        path: str = "/",
        secret: str | Secret | Mapping[str, str] | None = None,
        json: bool = True,
        field: str = "value",
        most: int = 64,
        max_body: int = 1 << 20,
        answer_secs: float = 30.0,
    ) -> None:
        given: Any = path
        if type(port) is not int or not 0 < port < 65536:
            raise ConfigError(f"port is {port!r}; use a number from 1 to 65535")
        if not isinstance(given, str) or not given.startswith("/"):
            raise ConfigError(f"path is {path!r}; it begins with /")
        if secret is None and not _is_loopback(host):
            raise ConfigError(
                f"host is {host!r}, where others than this machine can send what they like: give a secret=, such as {{'env': "
                "'HOOK_SECRET'}}, or listen at 127.0.0.1 behind a proxy"
            )
        for name, number in (("most", most), ("max_body", max_body)):
            if type(number) is not int or number < 1:
                raise ConfigError(f"{name} is {number!r}; use a number from 1")
        if not answer_secs > 0:
            raise ConfigError(f"answer_secs is {answer_secs!r}; use seconds above 0")
        self.port = port
        self.host = host
        self.path = path
        self.secret = None if secret is None else Secret(secret, "the webhook's secret")
        self.json = json
        self.output_fields = [field]  # type: ignore[misc]
        self.most = most
        self.max_body = max_body
        self.answer_secs = answer_secs

    def check_start(self, conf: dict[str, Any]) -> None:
        """Check that the secret is there."""
        super().check_start(conf)
        if self.secret is not None:
            self.secret.reveal()

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        from multilang.connectors.webhook_server import WebhookServer

        self._sent: dict[int, Post] = {}
        self._serial = 0
        port = self.port + context.task_index
        try:
            self._server = WebhookServer(
                self.host,
                port,
                path=self.path,
                secret=None if self.secret is None else self.secret.reveal(),
                json=self.json,
                most=self.most,
                max_body=self.max_body,
                answer_secs=self.answer_secs,
            )
        except OSError as problem:
            raise ConnectorError(
                f"spout {context.component!r} can't listen at {self.host}:{port}: {problem}; name a port that is free"
            ) from problem

    def activate(self) -> None:
        self._server.activate()

    def deactivate(self) -> None:
        self._server.deactivate()

    def next_tuple(self) -> None:
        while len(self._sent) < self.most:
            post = self._server.take()
            if post is None:
                return
            self._serial += 1
            self._sent[self._serial] = post
            self.emit([post.value], self._serial)

    def ack(self, tup_id: Any) -> None:
        post = self._sent.pop(tup_id, None)
        if post is not None:
            post.answer(True)

    def fail(self, tup_id: Any) -> None:
        post = self._sent.pop(tup_id, None)
        if post is not None:
            post.answer(False)

    def close(self) -> None:
        if hasattr(self, "_server"):
            self._server.deactivate()
            for post in self._sent.values():
                post.answer(False)
            self._server.close()

    def _runner_gave_up(self) -> None:
        self.close()  # the next task listens at the same port


class WebhookSink(LingeringBolt):
    """A bolt that sends each tuple by POST, as a JSON object of its fields; see the module.

    Args:
        url: The address, ``http://`` or ``https://``.
        secret: What is sent as ``Authorization: Bearer ...``, better as its place: ``{"env": NAME}``.
        headers: Further headers.
        fields: The tuple's fields that are sent; None: all. A tuple of one field ``value`` is sent as its value.
        concurrency: The most requests under way at once in a task.
        timeout_secs: Seconds that an answer may take.
    """

    linger_secs = 0.005

    def __init__(
        self,
        url: str,
        secret: str | Secret | Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        fields: Sequence[str] | None = None,
        concurrency: int = 8,
        timeout_secs: float = 10.0,
    ) -> None:
        from urllib.parse import urlsplit

        given: Any = url
        parts = urlsplit(given) if isinstance(given, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"url is {masked_text(str(url))!r}; give one that begins with http:// or https://")
        if type(concurrency) is not int or concurrency < 1:
            raise ConfigError(f"concurrency is {concurrency!r}; use a number of requests from 1")
        if not timeout_secs > 0:
            raise ConfigError(f"timeout_secs is {timeout_secs!r}; use seconds above 0")
        self.url = url
        self.secret = None if secret is None else Secret(secret, "the webhook's secret")
        self.headers = dict(headers or {})
        self.fields = None if fields is None else list(fields)
        self.concurrency = concurrency
        self.timeout_secs = timeout_secs
        self.batch_size = concurrency  # so that one call takes as long as one request at most

    def check_start(self, conf: dict[str, Any]) -> None:
        """Check that the secret is there."""
        super().check_start(conf)
        if self.secret is not None:
            self.secret.reveal()

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        from concurrent.futures import ThreadPoolExecutor

        self._head = {"Content-Type": "application/json", **self.headers}
        if self.secret is not None:
            self._head["Authorization"] = f"Bearer {self.secret.reveal()}"
        self._pool = ThreadPoolExecutor(self.concurrency)
        self._quiet_until = 0.0

    def process_batch(self, key: None, tups: list[Tuple]) -> None:
        taken, bodies = made_of(self, tups, self._body, masked_text(self.url))
        under_way: deque[tuple[Tuple, Future[str | None]]] = deque(
            (tup, self._pool.submit(self._post, body)) for tup, body in zip(taken, bodies, strict=True)
        )
        for tup, sent in under_way:
            problem = sent.result()
            if problem is not None:
                if self.clock() >= self._quiet_until:
                    self._quiet_until = self.clock() + _QUIET_SECS
                    self.report_error(
                        f"POST {masked_text(self.url)}: {problem}; the tuple fails, and is sent again if it is replayed"
                    )
                self.fail(tup)

    def close(self) -> None:
        if hasattr(self, "_pool"):
            self._pool.shutdown(cancel_futures=True)

    def _body(self, tup: Tuple) -> bytes:
        row = record(tup, self.fields)
        return dumps(row["value"] if list(row) == ["value"] else row).encode()

    def _post(self, body: bytes) -> str | None:
        """Send a body; return the problem, if there was one."""
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import Request

        from multilang.transport.http_in_time import opened

        request = Request(self.url, body, self._head, method="POST")
        try:
            with opened(request, self.timeout_secs, self.timeout_secs, _MOST_ANSWER) as answer:
                answer.read1(_MOST_READ)  # only its status counts; an endless body is not read to its end
        except HTTPError as problem:
            with problem:
                return f"it was answered {problem.code} {problem.reason}"
        except (OSError, HTTPException) as problem:
            return " ".join(str(problem).split()) or type(problem).__name__
        return None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False

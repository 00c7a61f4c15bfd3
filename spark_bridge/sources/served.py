"""A live source over a socket: the messages between a spout's process and the Spark driver, and the spout's end.

The framing is that of multiprocessing.connection, of which only ``send_bytes`` and ``recv_bytes`` are used, never the
methods that pickle. Each end proves by an HMAC (SHA-256) of both ends' random numbers and of its own role that it knows
the secret, which never crosses the wire. Messages are neither encrypted nor signed: on networks that others listen on,
use a tunnel.

A message is a JSON object on one line; in answers, the text of a block follows the line. No wait is endless: a peer
that sends nothing, or reads nothing, for too long is disconnected.
"""

from __future__ import annotations

import hmac
import os
import socket
import struct
from multiprocessing.connection import Connection
from time import monotonic

from multilang.component.errors import ChangedRowsError, ConnectorError, SourceUnavailable
from multilang.protocol.codec import dumps, loads
from multilang.settings import SECRET_FILE
from spark_bridge.sources.blocks import Block, BlockSource, Chains, chain_of
from spark_bridge.sources.source import Comparison, Mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from spark_bridge.sources.source import Progress
SECRET = "MULTILANG_SOURCE_SECRET"  # the name of an environment variable
SHORTEST_SECRET = 16  # characters
MAX_REQUEST = 1024 * 1024  # bytes
MAX_ANSWER = 1024 * 1024 * 1024  # bytes; large, because the length of a block depends on its rows
_GREETING = b"#multilang served 3#"
_RANDOM = 32  # bytes of each end's random number
_LONGEST_PROOF = 256  # bytes of a message before authentication
_LENGTH = struct.Struct("!i")  # of a message, before it
_REFUSED = b"#refused#"
STALLED_SECS = 30.0  # longest silence while a message is due; an end that works on an answer sends a message more often


def secret(variable: str = SECRET, file: str | None = None) -> bytes:
    """Return the secret that both ends know.

    Args:
        variable: The environment variable that has it, unless a file is given.
        file: The file that has it; white space around it does not count.

    Raises:
        ConnectorError: There is no secret, or it is too short.
    """
    if file is None:
        place, text = f"the environment variable {variable}", os.environ.get(variable, "")
    else:
        place = f"{_named_file(file)},"
        try:
            with open(file, encoding="utf-8") as opened:
                text = opened.read().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConnectorError(
                f"the secret of the served source can't be read from {place[:-1]}: {error}; put the serving driver's there, on "
                "each machine that has a task of the spout, readable for the user of its workers alone"
            ) from None
    if len(text) < SHORTEST_SECRET:
        raise ConnectorError(
            f"{place} has {'no secret' if not text else f'{len(text)} characters only'}; set it to "
            f"the serving driver's, of at least {SHORTEST_SECRET} characters (python -c 'import secrets; "
            "print(secrets.token_hex(32))')"
        )
    return text.encode()


def _named_file(file: str) -> str:
    return f"the file {file!r}, which {SECRET_FILE} or secret_file= names"


class Channel:
    """One end of a connection.

    ``stalled_secs``: how long the other end may send nothing, or read nothing, when it should; and how long it has in all to
    authenticate itself.
    """

    def __init__(self, sock: socket.socket, stalled_secs: float = STALLED_SECS) -> None:
        sock.settimeout(None)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # A second handle on the socket, to shut it down from another thread: closing alone would not interrupt a thread that
        # waits.
        self._socket = sock.dup()
        self._connection = Connection(sock.detach())
        self._secs = stalled_secs
        self.patience(stalled_secs)

    def patience(self, secs: float) -> None:
        """Set the seconds after which a peer that stops within a message, or does not read, is disconnected."""
        seconds, micros = divmod(int(secs * 1e6), 1_000_000)
        for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            self._socket.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", seconds, micros))

    def prove(self, key: bytes, first: bool, secret_file: str | None = None) -> None:
        """Authenticate both ends.

        ``first``: this end, the server's, asks first. ``secret_file``: the file that has this end's secret, for the
        message. Raises ConnectorError if the secrets differ.
        """
        end = monotonic() + self._secs
        try:
            same = self._proves_as_server(key, end) if first else self._proves_as_client(key, end)
        except (EOFError, OSError) as error:
            raise SourceUnavailable(f"the connection ended while it was authenticated: {error!r}") from None
        except ValueError:
            raise ConnectorError("the other end uses another protocol; is this the port of serve()?") from None
        if not same:
            fix = "give both the same in their environment"
            if secret_file is not None:
                fix = f"put the serving driver's into {_named_file(secret_file)}"
            raise ConnectorError(f"the two ends do not have the same secret; {fix}")

    def _proves_as_server(self, key: bytes, end: float) -> bool:
        ours = os.urandom(_RANDOM)
        self._connection.send_bytes(_GREETING + ours)
        proof = self._proof(end)
        theirs, digest = proof[:_RANDOM], proof[_RANDOM:]
        if not hmac.compare_digest(digest, _digest(key, b"client", ours, theirs)):
            self._connection.send_bytes(_REFUSED)
            return False
        self._connection.send_bytes(_digest(key, b"server", ours, theirs))
        return True

    def _proves_as_client(self, key: bytes, end: float) -> bool:
        greeting = self._proof(end)
        theirs = greeting[len(_GREETING) :]
        if not greeting.startswith(_GREETING) or len(theirs) != _RANDOM:
            raise ValueError("no greeting of ours")
        ours = os.urandom(_RANDOM)
        self._connection.send_bytes(ours + _digest(key, b"client", theirs, ours))
        digest = self._proof(end)
        return hmac.compare_digest(digest, _digest(key, b"server", theirs, ours))

    def _proof(self, end: float) -> bytes:
        """Return a short message. Raises TimeoutError unless all of it arrives before ``end``."""
        (size,) = _LENGTH.unpack(self._exactly(_LENGTH.size, end))
        if not 0 <= size <= _LONGEST_PROOF:
            raise ValueError("no proof has so many bytes")
        return self._exactly(size, end)

    def _exactly(self, size: int, end: float) -> bytes:
        data = b""
        while len(data) < size:
            left = end - monotonic()
            if left <= 0 or not self._connection.poll(left):
                raise TimeoutError("the other end took too long")
            part = self._socket.recv(size - len(data))
            if not part:
                raise EOFError("it was closed")
            data += part
        return data

    def send(self, message: dict[str, Any], data: bytes = b"") -> None:
        """Send a message. Raises SourceUnavailable when the other end is closed, or does not read."""
        try:
            self._connection.send_bytes(dumps(message).encode() + b"\n" + data)
        except (OSError, ValueError) as error:
            raise SourceUnavailable(f"the connection ended: {error!r}") from None

    def receive(self, most: int, wait: float | None = None) -> tuple[dict[str, Any], bytes]:
        """Return the next message and the data after it.

        ``most``: the longest message, in bytes. ``wait``: seconds until it begins, None for no limit; afterwards
        SourceUnavailable is raised.
        """
        try:
            if wait is not None and not self._connection.poll(wait):
                raise SourceUnavailable(f"nothing was received for {wait:g} seconds")
            if wait is None:
                self._connection.poll(None)
            head, _, data = self._connection.recv_bytes(most).partition(b"\n")
            message = loads(head)
            if not isinstance(message, dict):
                raise ValueError("no object")
            return message, data
        except (EOFError, OSError) as error:
            raise SourceUnavailable(f"the connection ended: {error!r}") from None
        except ValueError:
            raise ConnectorError("the other end uses another protocol") from None

    def close(self) -> None:
        """Shut the connection down, from any thread. A thread that waits for it gets an error."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the other end was quicker
        self._socket.close()

    def __del__(self) -> None:
        if hasattr(self, "_socket"):
            self._socket.close()  # the source was not closed

    def release(self) -> None:
        """Close the connection, in the thread that uses it."""
        self.close()
        self._connection.close()


def _digest(key: bytes, role: bytes, server: bytes, client: bytes) -> bytes:
    """Return the proof of an end. It includes the role, so that a proof can't be sent back to its author."""
    return hmac.digest(key, role + server + client, "sha256")


def connect(
    host: str, port: int, key: bytes, stalled_secs: float = STALLED_SECS, secret_file: str | None = None
) -> Channel:
    """Connect to a driver that serves.

    ``secret_file``: the file that has the secret, for the message about another one. Raises SourceUnavailable when the
    driver does not answer, ConnectorError for another secret.
    """
    try:
        sock = socket.create_connection((host, port), timeout=stalled_secs)
    except OSError as error:
        raise SourceUnavailable(f"nothing answers at {host}:{port}: {error}") from None
    channel = Channel(sock, stalled_secs)
    try:
        channel.prove(key, first=False, secret_file=secret_file)
    except BaseException:
        channel.release()
        raise
    return channel


class ServedSource(BlockSource):
    """The source that ``serve`` serves at ``served://HOST:PORT``.

    It connects when something is asked of it, and again after the connection was lost. The driver may have been
    restarted meanwhile, if it gives the same rows.

    Args:
        url: The URL, as ``served.url`` has it.
        secret_variable: The environment variable that has the secret.
        secret_file: The file that has the secret instead. By default it is the one that the topology's conf names as
            ``multilang.source.secret.file``, if it names one.

    Raises:
        ConnectorError: ``url`` is not of that form.
    """

    asks = True

    def __init__(self, url: str, *, secret_variable: str = SECRET, secret_file: str | None = None) -> None:
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
        self._reads = False  # whether this source's group was reported to the driver
        self._channel: Channel | None = None
        self._about: dict[str, Any] | None = None
        self._chains: Chains | None = None
        self._closing = False
        self._driver: str | None = None  # the identity of what the driver serves
        self._reported: dict[int, Progress] = {}  # for a driver that was restarted without them

    def configure(self, conf: Mapping[str, Any]) -> None:
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

    def block(self, partition: int, offset: int) -> Block | None:
        answer, data = self._ask({"op": "block", "partition": partition, "offset": offset})
        if answer.get("end"):
            return None
        before, chain = bytes.fromhex(answer["before"]), bytes.fromhex(answer["chain"])
        if chain_of(before, data) != chain:
            raise ConnectorError(f"a block of partition {partition} from {self.url} does not have its own checksum")
        block = Block(answer["start"], answer["rows"], before, chain, answer["last"], data)
        assert self._chains is not None
        self._chains.check(partition, block)
        return block

    def soon(self, partition: int, offset: int) -> None:
        self._ask({"op": "soon", "partition": partition, "offset": offset})

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
            if self._reads:  # also without any progress, so that the driver continues to wait for the group
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
        """Check that a restarted driver has the same rows, before they are reported as acked."""
        assert self._chains is not None
        assert self._about is not None
        chains, self._channel = self._chains, channel
        self._decoded.clear()
        try:
            newest = chains.newest()
            for partition, offset in newest.items():
                if self.block(partition, offset) is None:
                    raise ChangedRowsError(
                        f"partition {partition} of {self.url} ends before offset {offset} now, which was read before; serve the "
                        "same RDD"
                    )
            # The chains of partitions that are read for the comparison must not count as seen.
            self._chains = Chains(self._about["name"])
            unseen = {each: known for each, known in self._reported.items() if each not in newest}
            marks = {each: Mark(known.watermark, known.total) for each, known in unseen.items()}
            Comparison(self, marks, "this topology", "another topology").finish()
            for partition, known in unseen.items():
                if known.done and self.read(partition, known.watermark, 1):
                    raise ChangedRowsError(
                        f"partition {partition} of {self.url} continues now behind its end, which was at row {known.watermark}; "
                        "serve the same RDD, or begin a new topology for what is new"
                    )
        finally:
            self._channel, self._chains = None, chains
            self._decoded.clear()

    def _check(self, about: dict[str, Any]) -> None:
        if self._about is None:
            self._about = about
            self._chains = Chains(about["name"])
        elif about != self._about:
            raise ChangedRowsError(
                f"{self.url} serves {about} now and served {self._about} before; serve the same RDD under the same name="
            )


def _report(progress: Iterable[Progress], group: str) -> dict[str, Any]:
    known = [[each.partition, each.watermark, each.done] for each in progress]
    return {"op": "report", "group": group, "progress": known}


def _remade(url: str, secret_variable: str, secret_file: str | None) -> ServedSource:
    return ServedSource(url, secret_variable=secret_variable, secret_file=secret_file)

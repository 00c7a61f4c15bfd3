"""Connections to Redis that wait while it restarts, and whose errors name the server."""

from __future__ import annotations

from functools import partial
from ssl import SSLCertVerificationError
from sys import exc_info
from time import monotonic

from multilang.component.errors import ConfigError
from multilang.helpers.extras import imported
from multilang.settings import REDIS_ACCESS
from multilang.store import redis_access as access
from multilang.store.errors import StateError, StoreGoneError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

PATIENCE_SECS = 20.0  # for a Redis that restarts
HASTE_SECS = 3.0  # the same when somebody waits for the answer, or when the answer matters little
MAX_ANSWER = 256 * 1024 * 1024  # bytes of all answers to what was sent at once
ANSWER_SECS = 60.0  # from the first byte of these answers to their last
_LONGEST_PAUSE_SECS = 0.5  # between two tries
REQUIRES = {"redis": "redis>=5"}


def connect(settings: Mapping[str, Any], what: str, patience: float | Callable[[], float] | None = None) -> Any:
    """Return a client for one server. Nothing is sent before its first command.

    Args:
        settings: ``host``, ``port``, ``timeout`` (milliseconds), ``database``, and the members of ``redis_access``, each
            optional.
        what: The thing that needs the client, in the words of a message.
        patience: Seconds for which a command is repeated while there is no answer, or what returns them after each try; None:
            ``PATIENCE_SECS``.
    """
    redis, common = _common(settings, what)
    from redis.retry import Retry

    client = redis.Redis(
        host=settings.get("host", "localhost"),
        port=settings.get("port", 6379),
        db=settings.get("database", 0),
        retry=Retry(_Patience(patience), -1, supported_errors=_faults(redis)),
        retry_on_error=list(_faults(redis)),  # redis-py 5 repeats a command on no other error
        redis_connect_func=partial(_begin_bounded, redis=redis),
        **common,
    )

    plain_or_tls: Any = redis.SSLConnection if settings.get("tls") else redis.Connection

    class PatientConnection(plain_or_tls):  # type: ignore[misc]
        """A connection that also repeats its handshake: before 7.4, redis-py repeats only the socket's connect."""

        def connect(self) -> None:
            self.retry.call_with_retry(super().connect, lambda _: self.disconnect())

        def read_response(self, *args: Any, **options: Any) -> Any:
            return _unless_busy(redis, lambda: super(PatientConnection, self).read_response(*args, **options))

    client.connection_pool.connection_class = PatientConnection
    return client


def connect_cluster(
    settings: Mapping[str, Any], what: str, setting: str, patience: float | Callable[[], float] | None = None
) -> Any:
    """Return a client for a cluster; see ``connect``. One of the ``nodes``, each ``"host:port"``, is asked at once.

    ``setting`` is the setting that names the nodes, for messages.

    In every version, redis-py's own retries for clusters end when no node is there, so whole commands are repeated
    here.
    """
    nodes = settings.get("nodes")
    if not isinstance(nodes, list) or not nodes:
        raise ConfigError(f'{setting}: jedisClusterConfig has "nodes": ["host:port", ...], not {nodes!r}')
    redis, common = _common(settings, what)
    from redis.cluster import ClusterNode, RedisCluster
    from redis.retry import Retry

    down = redis.exceptions.RedisClusterException, redis.exceptions.ClusterError

    def patiently(command: Callable[[], Any]) -> Any:
        retry = Retry(_Patience(patience), -1, supported_errors=(*_faults(redis), *down))  # its time is one thread's
        return retry.call_with_retry(command, lambda _: None)

    class PatientCluster(RedisCluster):  # type: ignore[misc]
        """A cluster's client that repeats a command while no node answers."""

        def on_connect(self, connection: Any) -> None:
            _bound(connection, redis)
            super().on_connect(connection)

        def execute_command(self, *args: Any, **options: Any) -> Any:
            once = super().execute_command
            return patiently(lambda: _unless_busy(redis, lambda: once(*args, **options)))

    split = [_node(each, setting).rpartition(":") for each in nodes]
    with translated_errors(place(settings), setting):
        return patiently(
            lambda: PatientCluster(startup_nodes=[ClusterNode(host, int(port)) for host, _, port in split], **common)
        )


def _unless_busy(redis: Any, command: Callable[[], Any]) -> Any:
    """Run a command. If the server is busy with a script, raise the error of a server that starts, which is waited for."""
    try:
        return command()
    except redis.ResponseError as problem:
        if not str(problem).startswith("BUSY "):
            raise
        raise redis.exceptions.BusyLoadingError(str(problem)) from None


class _BoundedSocket:
    """A connected socket that takes no more than so many bytes, for so long, as answers to what was sent at once.

    redis-py itself reads answers of any size.
    """

    def __init__(self, wire: Any, refusal: type[Exception]) -> None:
        self._wire = wire
        self._refusal = refusal
        self._came = 0
        self._end: float | None = None  # None: no byte of the answers has come

    def sendall(self, data: Any) -> None:
        self._came, self._end = 0, None
        self._wire.sendall(data)

    def recv(self, *args: Any) -> Any:
        data = self._wire.recv(*args)
        self._count(len(data))
        return data

    def recv_into(self, *args: Any) -> int:
        size: int = self._wire.recv_into(*args)
        self._count(size)
        return size

    def _count(self, size: int) -> None:
        now = monotonic()
        if self._end is None:
            self._end = now + ANSWER_SECS
        self._came += size
        if self._came > MAX_ANSWER:
            raise self._refusal(f"its answer has more than {MAX_ANSWER} bytes")
        if size and now > self._end:
            raise self._refusal(f"its answer takes longer than {ANSWER_SECS:g} seconds")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wire, name)


def _bound(connection: Any, redis: Any) -> None:
    connection._sock = _BoundedSocket(connection._sock, redis.exceptions.InvalidResponse)


def _begin_bounded(connection: Any, redis: Any) -> None:
    """Log in by a bounded connection."""
    _bound(connection, redis)
    connection.on_connect()


def place(settings: Mapping[str, Any]) -> str:
    """Return the address of a server, or of a cluster's ``nodes``, in the words of a message."""
    if "nodes" in settings:
        return f"Redis cluster {', '.join(map(str, settings['nodes'] or ()))}"
    host, port = settings.get("host", "localhost"), settings.get("port", 6379)
    return f"Redis {host}:{port}, database {settings.get('database', 0)}"


# Parts of Redis's errors when a key, or a field that a script reads, has a value of another kind than was written.
_DAMAGED = ("WRONGTYPE", "DAMAGED", "attempt to compare", "attempt to perform arithmetic", "is not an integer")
NUMBER = """\
local function number(text, name)
  local found = tonumber(text or 0)
  if not found or found ~= math.floor(found) or math.abs(found) > 9007199254740991 then
    error('DAMAGED: ' .. name .. ' is ' .. string.sub(text, 1, 40) .. ', which is no number of it')
  end
  return found
end
"""
"""The beginning of scripts that read numbers: ``number(text, name)``; no text stands for 0."""


class translated_errors:  # noqa: N801  # read as a word
    """A context that turns redis-py's exceptions into StateError, or StoreGoneError for damaged data.

    Args:
        where: The server, in the words of a message.
        setting: The setting that names the server, for the message.
    """

    def __init__(self, where: str, setting: str = "") -> None:
        self._where = where
        self._setting = setting

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, RecursionError):
            raise StateError(f"{self._where} can't be used: its answer is nested too deep") from None
        if error is None or not type(error).__module__.startswith("redis."):
            return
        kinds = {each.__name__ for each in type(error).__mro__}
        fix = ""
        if "The user executing the script" in str(error):
            kinds.add("NoPermissionError")  # redis-py has no name for it
        if "AuthenticationError" in kinds:
            fix = f"; its user and password belong into {REDIS_ACCESS}, or the password into the environment, {access.PASSWORD}"
        elif "NoPermissionError" in kinds:
            fix = "; give its user the right (ACL SETUSER), or log in as another user"
        elif _is_distrusted(error):
            fix = f'; name the authority that signed its certificate in {REDIS_ACCESS}: {{"ca": FILE}}'
        elif kinds & {"ConnectionError", "TimeoutError", "RedisClusterException"}:
            fix = f"; start it, or name another{' in ' * bool(self._setting)}{self._setting}"
        if any(sign in str(error) for sign in _DAMAGED):
            raise StoreGoneError(
                f"{self._where}: what is stored there is not what was written: it was changed by hand, or damaged "
                f"({str(error).partition(' script: ')[0].rstrip('.')}). Restore it, or remove it to start from nothing"
            ) from None
        raise StateError(f"{self._where} can't be used: {str(error).rstrip('.')}{fix}") from None


class _Patience:
    """Pauses between tries (redis-py's AbstractBackoff), for so many seconds in all, however long a try takes.

    redis-py counts a refused password or certificate as an error of the connection. It stays refused, so it is raised at
    once.
    """

    def __init__(self, secs: float | Callable[[], float] | None) -> None:
        self._secs = PATIENCE_SECS if secs is None else secs
        self._began = 0.0

    def reset(self) -> None:
        """Begin with the first try."""
        self._began = monotonic()

    def compute(self, failures: int) -> float:
        """Return the seconds until the next try; when the time is over, raise the error that is being handled."""
        error = exc_info()[1]
        secs = self._secs() if callable(self._secs) else self._secs
        if monotonic() >= self._began + secs or type(error).__name__ == "AuthenticationError" or _is_distrusted(error):
            raise  # noqa: PLE0704  # called while it is handled
        return min(0.01 * 2.0 ** min(failures, 10), _LONGEST_PAUSE_SECS)


def _common(settings: Mapping[str, Any], what: str) -> tuple[Any, dict[str, Any]]:
    redis = imported("redis", "redis", what, error=StateError, on_workers=True)
    timeout = (settings.get("timeout") or 2000) / 1000
    return redis, {
        "socket_keepalive": True,
        **access.options(settings),
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
    }


def _is_distrusted(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None


def _faults(redis: Any) -> tuple[type[Exception], ...]:
    """Return the errors after which a command is tried again. Each of our commands may be done twice.

    A refused connection is an OSError here: redis-py turns it into its own ConnectionError only after its last try.
    """
    return (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, OSError)


def _node(node: Any, setting: str) -> str:
    """Return a node as ``"host:port"``; Jedis also writes ``{"host": ..., "port": ...}``."""
    text = f"{node.get('host')}:{node.get('port')}" if isinstance(node, dict) else str(node)
    if not text.rpartition(":")[2].isdecimal():
        raise ConfigError(f"{setting}: a node of jedisClusterConfig is 'host:port', not {node!r}")
    return text


def literal(text: str) -> str:
    """Return ``text`` escaped for a pattern of SCAN."""
    return "".join(f"\\{letter}" if letter in "*?[]\\^" else letter for letter in text)

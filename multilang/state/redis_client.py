"""Connections to Redis that wait for one that is being started again, and say which it is when they can't have it."""

from __future__ import annotations

import os
from time import monotonic

from multilang.component.errors import ConfigError
from multilang.state.errors import StateError
from multilang.state.settings import CONFIG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PATIENCE_SECS = 20.0  # for a Redis that is being started again
_LONGEST_PAUSE_SECS = 0.5  # between two tries
PASSWORD = "MULTILANG_REDIS_PASSWORD"  # the environment's, so that it need not be in a conf


def connect(settings: Mapping[str, Any], what: str, patience: float | None = None) -> Any:
    """A client for one server: ``host``, ``port``, ``timeout`` (milliseconds), ``database``, ``password``.

    ``what`` needs it, in the words of a message. Each command is repeated for ``patience`` seconds (PATIENCE_SECS unless
    given) while there is no answer. Nothing is sent before the first command.
    """
    redis, common = _common(settings, what, patience)
    return redis.Redis(
        host=settings.get("host", "localhost"),
        port=settings.get("port", 6379),
        db=settings.get("database", 0),
        **common,
    )


def connect_cluster(settings: Mapping[str, Any], what: str, patience: float | None = None) -> Any:
    """The same for a cluster, by some of its ``nodes``, ``"host:port"`` each, of which one is asked at once."""
    nodes = settings.get("nodes")
    if not isinstance(nodes, list) or not nodes:
        raise ConfigError(f'{CONFIG}: jedisClusterConfig has "nodes": ["host:port", ...], not {nodes!r}')
    _, common = _common(settings, what, patience)
    from redis.cluster import ClusterNode, RedisCluster

    split = [_node(each).rpartition(":") for each in nodes]
    with explained(f"Redis cluster {', '.join(map(str, nodes))}", CONFIG):
        return RedisCluster(startup_nodes=[ClusterNode(host, int(port)) for host, _, port in split], **common)


def place(settings: Mapping[str, Any]) -> str:
    """Which server, for people."""
    host, port = settings.get("host", "localhost"), settings.get("port", 6379)
    return f"Redis {host}:{port}, database {settings.get('database', 0)}"


class explained:  # noqa: N801  # read as a word
    """Redis' own exceptions as StateError, with where it is, and in which ``setting`` that is said."""

    def __init__(self, where: str, setting: str = "") -> None:
        self._where = where
        self._setting = setting

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or not type(error).__module__.startswith("redis."):
            return
        kinds = {each.__name__ for each in type(error).__mro__}
        fix = ""
        if kinds & {"AuthenticationError", "NoPermissionError"}:
            fix = f"; its password belongs into the environment, {PASSWORD}"
        elif kinds & {"ConnectionError", "TimeoutError", "RedisClusterException"}:
            fix = f"; start it, or name another{' in ' * bool(self._setting)}{self._setting}"
        raise StateError(f"{self._where} can't be used: {str(error).rstrip('.')}{fix}") from error


class _Patience:
    """How redis-py waits between two tries (its AbstractBackoff), for so many seconds in all, however long a try takes."""

    def __init__(self, secs: float) -> None:
        self._secs = secs
        self._end = 0.0

    def reset(self) -> None:
        """The first try begins."""
        self._end = monotonic() + self._secs

    def compute(self, failures: int) -> float:
        """Seconds until the next try; at the end the error that was caught is raised again."""
        if monotonic() >= self._end:
            raise  # noqa: PLE0704  # called while it is handled
        return min(0.01 * 2.0 ** min(failures, 10), _LONGEST_PAUSE_SECS)


def _common(settings: Mapping[str, Any], what: str, patience: float | None) -> tuple[Any, dict[str, Any]]:
    try:
        import redis
        from redis.retry import Retry
    except ImportError as problem:
        raise StateError(
            f"{what} needs the package redis ({problem}): pip install 'storm-multilang[redis]'; for a cluster's "
            "workers put redis into the file that multilang submit --requirements names"
        ) from problem
    faults = (redis.exceptions.BusyLoadingError, redis.exceptions.ConnectionError, redis.exceptions.TimeoutError)
    timeout = (settings.get("timeout") or 2000) / 1000
    secs = PATIENCE_SECS if patience is None else patience
    return redis, {
        # Every command of ours may be repeated: what a retry finds done already, it does again.
        "retry": Retry(_Patience(secs), int(secs / _LONGEST_PAUSE_SECS), supported_errors=faults),
        "socket_keepalive": True,
        "password": settings.get("password") or os.environ.get(PASSWORD),
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
    }


def _node(node: Any) -> str:
    """``"host:port"``, or Jedis' ``{"host": ..., "port": ...}``."""
    text = f"{node.get('host')}:{node.get('port')}" if isinstance(node, dict) else str(node)
    if not text.rpartition(":")[2].isdecimal():
        raise ConfigError(f"{CONFIG}: a node of jedisClusterConfig is 'host:port', not {node!r}")
    return text

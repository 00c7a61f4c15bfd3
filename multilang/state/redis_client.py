"""Connections to Redis that wait for one that is being started again, and say which it is when they can't have it."""

from __future__ import annotations

import os

from multilang.component.errors import ConfigError
from multilang.state.errors import StateError
from multilang.state.settings import CONFIG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PATIENCE_SECS = 20.0  # for a Redis that is being started again
PASSWORD = "MULTILANG_REDIS_PASSWORD"  # the environment's, so that it need not be in a conf


def connect(settings: Mapping[str, Any], what: str) -> Any:
    """A client for one server: ``host``, ``port``, ``timeout`` (milliseconds), ``database``, ``password``.

    ``what`` needs it, in the words of a message. Nothing is sent before the first command.
    """
    redis, common = _common(settings, what)
    return redis.Redis(
        host=settings.get("host", "localhost"),
        port=settings.get("port", 6379),
        db=settings.get("database", 0),
        **common,
    )


def connect_cluster(settings: Mapping[str, Any], what: str) -> Any:
    """The same for a cluster, by some of its ``nodes``, ``"host:port"`` each."""
    nodes = settings.get("nodes")
    if not isinstance(nodes, list) or not nodes:
        raise ConfigError(f'{CONFIG}: jedisClusterConfig has "nodes": ["host:port", ...], not {nodes!r}')
    _, common = _common(settings, what)
    from redis.cluster import ClusterNode, RedisCluster

    split = [_node(each).rpartition(":") for each in nodes]
    with explained(f"Redis cluster {', '.join(map(str, nodes))}"):
        return RedisCluster(startup_nodes=[ClusterNode(host, int(port)) for host, _, port in split], **common)


def place(settings: Mapping[str, Any]) -> str:
    """Which server, for people."""
    host, port = settings.get("host", "localhost"), settings.get("port", 6379)
    return f"Redis {host}:{port}, database {settings.get('database', 0)}"


class explained:  # noqa: N801  # read as a word
    """Redis' own exceptions as StateError, with where it is."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is not None and type(error).__module__.startswith("redis."):
            raise StateError(f"{self._where} can't be used: {error}") from error


def _common(settings: Mapping[str, Any], what: str) -> tuple[Any, dict[str, Any]]:
    try:
        import redis
        from redis.backoff import ExponentialBackoff
        from redis.retry import Retry
    except ImportError as problem:
        raise StateError(
            f"{what} needs the package redis ({problem}): pip install 'storm-multilang[redis]'; for a cluster's "
            "workers put redis into the file that multilang submit --requirements names"
        ) from problem
    faults = (redis.exceptions.BusyLoadingError, redis.exceptions.ConnectionError, redis.exceptions.TimeoutError)
    timeout = (settings.get("timeout") or 2000) / 1000
    return redis, {
        # Every command of ours may be repeated: what a retry finds done already, it does again.
        "retry": Retry(ExponentialBackoff(cap=0.5, base=0.01), int(PATIENCE_SECS / 0.5), supported_errors=faults),
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

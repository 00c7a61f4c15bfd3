"""The provider of states in Redis that Storm's key names. It is apart, so that only its users import ``redis``."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.settings import REDIS_MEMBERS
from multilang.state.databases import StoreProvider
from multilang.state.settings import CONFIG, PROVIDER, check_members
from multilang.store import redis_access as access
from multilang.store.redis import RedisStore
from multilang.store.redis_client import REQUIRES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.store.interface import Store

_POOL = ("host", "port", "timeout", "database", *REDIS_MEMBERS)
_CLUSTER = ("nodes", "timeout", "maxRedirections", *REDIS_MEMBERS)


class RedisStateProvider(StoreProvider):
    """A provider of states in Redis.

    ``topology.state.provider.config`` is that of Storm's page: ``{"jedisPoolConfig": {"host": ..., "port": ...}}``, or
    ``jedisClusterConfig`` with ``nodes`` for a cluster.
    """

    requires = REQUIRES

    def _check_config(self) -> None:
        check_members(self.config, "state in Redis", ("jedisPoolConfig", "jedisClusterConfig"))
        pool = _members(self.config, "jedisPoolConfig", _POOL)
        cluster = _members(self.config, "jedisClusterConfig", _CLUSTER)
        self._settings = cluster if cluster is not None and pool is None else pool or {}

    def _open(self) -> Store:
        return RedisStore("redis:", self.conf, CONFIG, self._settings)

    def portable(self) -> dict[str, Any]:
        return {PROVIDER: "redis", CONFIG: self.config}


def _members(config: Mapping[str, Any], name: str, known: tuple[str, ...]) -> dict[str, Any] | None:
    found = config.get(name)
    if found is None:
        return None
    if not isinstance(found, dict):
        raise ConfigError(f"{CONFIG}: {name} is an object with {', '.join(known)}, not {found!r}")
    unknown = [each for each in found if each not in known]
    if unknown:
        raise ConfigError(f"{CONFIG}: {name} knows no {unknown[0]!r}; it has {', '.join(known)}")
    given = {member: value for member, value in found.items() if value is not None and member not in REDIS_MEMBERS}
    for member, value in given.items():
        if member == "host":
            if type(value) is not str or not value:
                raise ConfigError(f"{CONFIG}: {name}.{member} is {value!r}; use text")
        elif member == "nodes":
            if not isinstance(value, list) or not value:
                raise ConfigError(f'{CONFIG}: {name} has "nodes": ["host:port", ...], not {value!r}')
        elif type(value) is not int or value < 0:
            raise ConfigError(f"{CONFIG}: {name}.{member} is {value!r}; use a number")
    members = {member: value for member, value in found.items() if member in REDIS_MEMBERS}
    return {**given, **access.checked(members, f"{CONFIG}: {name}")}

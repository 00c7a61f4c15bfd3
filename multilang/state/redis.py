"""State in Redis, laid out as Storm's RedisKeyValueState does, with the topology's name before each key.

================================== ==========================================================
key (a hash each)                  content
================================== ==========================================================
``<topology>:<namespace>``         the committed keys and values
``<topology>:<namespace>$prepare`` the prepared ones; an empty value stands for a deleted key
``<topology>:<namespace>$txid``    ``commit`` and ``prepare``: the transactions; ``epoch`` and ``claim``: the owner's;
                                   ``by``: the call that made the claim; ``step``: the last step that was done; ``size``
                                   and ``waiting``: the number of keys in the other two
``<topology>:$owner``              ``epoch`` and ``owner`` of the topology's states; ``<topology>:$beats`` counts its beats
================================== ==========================================================

Each step is one script of ``redis_store``. In a Redis cluster ``<topology>:<namespace>`` stands in braces, so that the three keys are on one server. Needs the
extra ``redis``.
"""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.state.errors import FencedError, StateError
from multilang.state.owner import Owner, claim_for
from multilang.state.provider import StateProvider
from multilang.state.redis_place import HASTE_SECS, RedisPlace
from multilang.state.redis_store import AT_ONCE, RedisStore, parts
from multilang.state.serializers import JsonKeySerializer, JsonSerializer, serializer
from multilang.state.settings import CONFIG, cached_keys, check_members
from multilang.state.stored import StoredState
from multilang.store import redis_access as access
from multilang.store.redis_client import REQUIRES, connect, connect_cluster, literal, place, translated_errors
from multilang.store.settings import stored_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


START_SECS = HASTE_SECS  # how long Redis is waited for before a topology starts
LARGEST = 512 * 1024 * 1024  # bytes of a value, unless the server says otherwise (proto-max-bulk-len)
_POOL = ("host", "port", "timeout", "database", *access.MEMBERS)
_CLUSTER = ("nodes", "timeout", "maxRedirections", *access.MEMBERS)
_COORDINATOR = "$checkpointspout-0"


class RedisStateProvider(StateProvider):
    """A provider of states in Redis.

    ``topology.state.provider.config`` is that of Storm's page: ``{"jedisPoolConfig": {"host": ..., "port": ...}}``, or
    ``jedisClusterConfig`` with ``nodes`` for a cluster.
    """

    requires: Mapping[str, str] = REQUIRES

    def __init__(self, config: Mapping[str, Any], conf: Mapping[str, Any]) -> None:
        super().__init__(config, conf)
        check_members(self.config, "state in Redis", ("jedisPoolConfig", "jedisClusterConfig"))
        self._pool = _members(self.config, "jedisPoolConfig", _POOL)
        self._cluster = _members(self.config, "jedisClusterConfig", _CLUSTER)
        self._keys = serializer(self.config, "keySerializerClass", JsonKeySerializer)
        self._values = serializer(self.config, "valueSerializerClass", JsonSerializer)
        topology = stored_name(self.conf)
        self._name = topology.replace("%", "%25").replace(":", "%3A")  # so that the first colon of a key ends the name
        self._found: Any = None
        self._largest: int | None = None

    @property
    def client(self) -> Any:
        """The connection, opened at its first use."""
        if self._found is None:
            self._found = self.connect()
        return self._found

    def new_state(self, namespace: str) -> StoredState:
        return StoredState(namespace, self._store(namespace), self._keys, self._values, cached_keys(self.conf))

    def namespaces(self) -> list[str]:
        return sorted(self._namespaces(self.key("").removesuffix("}")))

    def txids(self, namespace: str) -> tuple[int | None, int | None]:
        return self._store(namespace).txids()

    def replace(self, states: Mapping[str, Mapping[Any, Any]]) -> None:
        """Replace these contents in one transaction of renames, which shows them all at once. A cluster can't do that.

        Args:
            states: The new contents by namespace.

        Raises:
            FencedError: Somebody else has claimed the states since.
            StateError: This is a cluster.
        """
        if self.is_cluster:
            raise StateError(
                "what a Redis cluster holds can't be replaced all at once; export it and import it elsewhere"
            )
        client = self.client
        with translated_errors(self.describe()):
            for namespace, content in states.items():
                new = self.key(namespace, "$new")
                client.delete(new)
                rows = [(self._keys.encode(key), self._values.encode(value)) for key, value in content.items()]
                for part in parts(rows):
                    client.hset(new, mapping=dict(part))
            with client.pipeline(transaction=True) as pipeline:
                owner = self.key("", "$owner")
                pipeline.watch(owner)
                self._check_owner(*pipeline.hmget(owner, "epoch", "owner"))
                pipeline.multi()
                for namespace, content in states.items():
                    data = self.key(namespace)
                    pipeline.delete(data, f"{data}$prepare")
                    pipeline.hdel(f"{data}$txid", "commit", "prepare")
                    pipeline.hincrby(f"{data}$txid", "claim", 1)  # so that an earlier writer is refused
                    pipeline.hset(f"{data}$txid", mapping={"size": len(content), "waiting": 0})
                    if content:
                        pipeline.rename(f"{data}$new", data)
                        pipeline.hset(f"{data}$txid", "commit", -1)
                pipeline.execute()

    def adopt(self) -> int:
        """Give this topology's name to states that an older version stored without one.

        Returns:
            The number of namespaces.

        Raises:
            StateError: This is a cluster, or there is state under this topology's name already.
        """
        if self.is_cluster:
            raise StateError("what a Redis cluster holds can't be renamed; export it by the version that wrote it")
        found = self._older()
        if self.namespaces():
            raise StateError(f"{self.describe()} holds a state of this topology already; nothing was renamed")
        with translated_errors(self.describe()), self.client.pipeline(transaction=True) as pipeline:
            for name in found:
                for suffix in ("", "$prepare", "$txid"):
                    if self.client.exists(f"{name}{suffix}"):
                        pipeline.rename(f"{name}{suffix}", self.key(name, suffix))
            pipeline.execute()
        return len(found)

    def check(self) -> None:
        """Ask Redis once, with a short patience since somebody waits for the answer."""
        client = self.connect(START_SECS)
        try:
            with translated_errors(self.describe(), CONFIG):
                client.ping()
            self._check_eviction(client)
        finally:
            client.close()

    def place(self) -> RedisPlace:
        what = f"the state of topology {stored_name(self.conf)!r}"
        keys = self.key("", "$owner"), self.key("", "$beats")
        told = self.key(_COORDINATOR, "$txid"), "epoch"  # the first that is claimed in each epoch
        return RedisPlace(keys, self.connect, what, self.describe(), f"{CONFIG}, or another topology.name", told)

    def claim(self) -> int:
        if self._owned is None:
            self._check_eviction(self.client)
            self._owned = claim_for(self.conf, self.place())
            if not self.namespaces() and (older := self._older()):
                raise StateError(
                    f"{self.describe()} holds a state that an older version stored under no topology's name ({', '.join(older)}). "
                    "If it is this topology's: multilang state adopt TOPOLOGY; if not, name another database in "
                    f"{CONFIG}"
                )
        return self._owned.epoch

    def describe(self) -> str:
        if self.is_cluster:
            return f"Redis cluster {', '.join(map(str, (self._cluster or {}).get('nodes') or ()))}"
        return place(self._pool or {})

    def close(self) -> None:
        super().close()
        if self._found is not None:
            self._found.close()
            self._found = None

    @property
    def is_cluster(self) -> bool:
        """True for a Redis cluster, where a script sees the keys of one server only."""
        return self._cluster is not None and self._pool is None

    def key(self, namespace: str, suffix: str = "") -> str:
        """Return the key of a namespace, or with a ``suffix`` one of the keys beside it."""
        key = f"{self._name}:{namespace}"
        return f"{{{key}}}{suffix}" if self.is_cluster else f"{key}{suffix}"

    def connect(self, patience: float | None = None) -> Any:
        """Return a new connection.

        Args:
            patience: Seconds to wait for a Redis that does not answer; None: ``PATIENCE_SECS``.
        """
        if self._pool is None and self._cluster is not None:
            return connect_cluster(access.with_access(self.conf, self._cluster), "state in Redis", CONFIG, patience)
        return connect(access.with_access(self.conf, self._pool or {}), "state in Redis", patience)

    def _check_eviction(self, client: Any) -> None:
        """Raise StateError if the server deletes keys by itself when its memory is full."""
        with translated_errors(self.describe(), CONFIG):
            try:
                said = client.info("memory")
            except Exception as problem:
                if type(problem).__name__ not in ("ResponseError", "NoPermissionError"):
                    raise
                return  # this user may not know the server's policy
        policy = str(said.get("maxmemory_policy", ""))
        if policy.startswith("allkeys") and said.get("maxmemory"):
            raise StateError(
                f"{self.describe()} deletes keys when its memory is full (maxmemory-policy {policy}), and so would lose state: set "
                "it to noeviction, or use another Redis"
            )

    def _store(self, namespace: str) -> RedisStore:
        return RedisStore(self.client, namespace, self.key(namespace), self.describe(), self._value_limit())

    def _value_limit(self) -> int:
        """Return the largest size of a value, in bytes, that the server takes."""
        if self._largest is None:
            self._largest = LARGEST
            with translated_errors(self.describe(), CONFIG):
                try:
                    said = self.client.config_get("proto-max-bulk-len")
                    self._largest = min(LARGEST, int(next(iter(said.values()))))
                except Exception as problem:
                    if type(problem).__name__ not in ("ResponseError", "NoPermissionError", "StopIteration"):
                        raise  # the named errors leave the default: the server does not tell this user
        return self._largest

    def _namespaces(self, start: str) -> set[str]:
        found = set()
        end = "}" if self.is_cluster else ""
        client = self.client
        with translated_errors(self.describe()):
            # After a first prepare that was cut short there is only $prepare. An older version had neither key for the
            # checkpoint spout.
            for pattern in ("*$txid", "*$prepare", f"{_COORDINATOR}{end}"):
                for key in client.scan_iter(match=literal(start) + pattern, count=AT_ONCE):
                    data = key.decode("utf-8", "replace").removesuffix("$txid").removesuffix("$prepare")
                    if any(client.hmget(f"{data}$txid", "commit", "prepare")) or client.exists(data, f"{data}$prepare"):
                        found.add(data.removeprefix(start).removesuffix(end))
        return found

    def _older(self) -> list[str]:
        """Return the namespaces of a version that stored one topology in a database, without its name."""
        if self.is_cluster:
            return []
        with translated_errors(self.describe()):
            try:
                if not self.client.exists(_COORDINATOR):
                    return []
            except Exception as problem:
                if type(problem).__name__ != "NoPermissionError":
                    raise
                return []  # this user may use the keys under the topology's name alone
        return sorted({_COORDINATOR, *(name for name in self._namespaces("") if ":" not in name)})

    def _check_owner(self, epoch: bytes | None, owner: bytes | None) -> None:
        mine = 0 if self._owned is None else self._owned.epoch
        if epoch is None or owner is None or int(epoch) != mine:
            by = "nobody" if owner is None else Owner.from_text(owner)
            raise FencedError(
                f"the state of {self._name!r} in {self.describe()} belongs to {by} by now: nothing was replaced"
            )


def _members(config: Mapping[str, Any], name: str, known: tuple[str, ...]) -> dict[str, Any] | None:
    found = config.get(name)
    if found is None:
        return None
    if not isinstance(found, dict):
        raise ConfigError(f"{CONFIG}: {name} is an object with {', '.join(known)}, not {found!r}")
    unknown = [each for each in found if each not in known]
    if unknown:
        raise ConfigError(f"{CONFIG}: {name} knows no {unknown[0]!r}; it has {', '.join(known)}")
    given = {member: value for member, value in found.items() if value is not None and member not in access.MEMBERS}
    for member, value in given.items():
        if member == "host":
            if type(value) is not str or not value:
                raise ConfigError(f"{CONFIG}: {name}.{member} is {value!r}; use text")
        elif member != "nodes" and (type(value) is not int or value < 0):
            raise ConfigError(f"{CONFIG}: {name}.{member} is {value!r}; use a number")
    members = {member: value for member, value in found.items() if member in access.MEMBERS}
    return {**given, **access.checked(members, f"{CONFIG}: {name}")}

"""A map's values in Redis. Needs the extra ``redis``."""

from __future__ import annotations

from multilang.state.errors import StoreGoneError
from multilang.store.redis_access import settings
from multilang.store.redis_client import REQUIRES, connect, place, translated_errors
from multilang.transactional.maps.backing import Backing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from multilang.transactional.maps.backing import Row

_OF_STATES = ("claim", "commit", "epoch")  # fields that a map does not have: its keys are JSON

START_SECS = 1.0  # of patience, before a topology starts

# A script runs alone: nobody writes between its comparison and its writes. The empty text stands for no value. ``$size`` is
# the number of the other fields, and ``$step`` that of the puts: whoever deletes a field, or puts an older copy back, does not
# change both as a put does. A map that an earlier version wrote has neither, until its next put.
# ARGV: the last step that this client knows of; then rows.
_PUT = """\
local size, step = unpack(redis.call('HMGET', KEYS[1], '$size', '$step'))
local fields = redis.call('HLEN', KEYS[1])
if size then fields = fields - 2 end
step = tonumber(step or 0)
if fields > 0 and step < tonumber(ARGV[1]) then return {'back', step} end
if size and fields ~= tonumber(size) then return {'lost', fields, size} end
for i = 2, #ARGV, 3 do
    if (redis.call('HGET', KEYS[1], ARGV[i]) or '') ~= ARGV[i + 1] then return {'changed'} end
end
for i = 2, #ARGV, 3 do
    fields = fields + redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 2])
end
redis.call('HSET', KEYS[1], '$size', fields, '$step', step + 1)
return {'done', step + 1}
"""


class RedisBacking(Backing):
    """A map in Redis: a hash with the key ``name``.

    A Redis that is being started again is waited for, up to 20 seconds.

    Args:
        name: The map's name.
        host: The server's host.
        port: The server's port.
        database: The number of the database.
        timeout: Milliseconds that an answer may take.
        access: The way in, if the server asks who comes: ``user``, ``password`` (a Secret, or its place), ``tls``, ``ca``,
            ``cert`` and ``key``, each optional; a missing password is that in the environment, ``MULTILANG_REDIS_PASSWORD``.
    """

    requires: Mapping[str, str] = REQUIRES

    _step = 0  # that of the last put of which this process knows

    def __init__(
        self,
        name: str,
        host: str = "localhost",
        port: int = 6379,
        database: int = 0,
        timeout: int = 2000,
        access: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self._settings = settings(host, port, database, timeout, access)

    def multi_get(self, keys: Sequence[str]) -> list[str | None]:
        if not keys:
            return []
        with translated_errors(self.describe()):
            found = self._client().hmget(self.name, keys)
        return [None if text is None else text.decode() for text in found]

    def multi_put(self, rows: Sequence[Row]) -> bool:
        arguments = [text or "" for row in rows for text in row]
        client = self._client()
        with translated_errors(self.describe()):
            said, *found = client.register_script(_PUT)(keys=[self.name], args=[self._step, *arguments])
        if said == b"back":
            raise StoreGoneError(
                f"{self.describe()} was put back to an older copy while it was in use: it has {found[0]} updates, and {self._step} "
                "were made. Nothing more is written to it. Put the newest copy back; if there is none, begin anew, with another "
                "transactional id and another name of the map"
            )
        if said == b"lost":
            raise StoreGoneError(
                f"{self.describe()} was changed by somebody else: it has {found[0]} fields, and {found[1].decode()} were written. Put a "
                "whole copy back; if there is none, begin anew, with another transactional id and another name of the map"
            )
        if said == b"done":
            self._step = int(found[0])
        return bool(said == b"done")

    def check(self) -> None:
        """Ask Redis once, with a short patience since somebody waits for the answer."""
        self._step = 0  # an earlier run in this process is over
        client = connect(self._settings, "a map in Redis", START_SECS)
        try:
            with translated_errors(self.describe()):
                client.ping()
            self._check_key(client)
        finally:
            client.close()

    def close(self) -> None:
        super().close()
        self._step = 0  # from now on the map is not in use

    def __getstate__(self) -> dict[str, Any]:
        """Return the backing as another process begins with it."""
        return {**super().__getstate__(), "_step": 0}

    def describe(self) -> str:
        return f"map {self.name!r} in {place(self._settings)}"

    def _client(self) -> Any:
        if self._opened is None:
            client = connect(self._settings, "a map in Redis")
            try:
                self._check_key(client)
            except BaseException:
                client.close()
                raise
            self._opened = client
        return self._opened

    def _check_key(self, client: Any) -> None:
        """Raise StoreGoneError if the key is one of a stored state's, which the map would spoil."""
        from redis.exceptions import NoPermissionError

        with translated_errors(self.describe()):
            kind = client.type(self.name).decode()
            found = client.hmget(self.name, _OF_STATES) if kind == "hash" else []
            try:
                beside = client.exists(f"{self.name}$txid")
            except NoPermissionError:  # the user may use this key alone, so that no state is here
                beside = 0
        if kind not in ("none", "hash"):
            raise StoreGoneError(
                f"{self.describe()}: this key is of type {kind}, and no map; give the map another name"
            )
        if beside or any(each is not None for each in found):
            raise StoreGoneError(
                f"{self.describe()}: this key belongs to the stored states of a topology, which a map would spoil; give the map "
                "another name"
            )

"""Positions of spouts in Redis.

A position is a hash, ``$position:TOPOLOGY:COMPONENT/TASK``, with ``position``, ``epoch``, ``owner``, and ``step``, the number
of the last save, and ``saved``, its epoch. A client that got no answer sends its save again, so a copy may come late: behind a later save it does
nothing.
"""

from __future__ import annotations

from multilang.state.errors import StoreGoneError
from multilang.state.owner import Owner
from multilang.state.positions import PositionStore
from multilang.state.redis_place import RedisPlace
from multilang.state.redis_store import AT_ONCE
from multilang.state.settings import POSITIONS
from multilang.store import redis_access as access
from multilang.store.redis_client import NUMBER, REQUIRES, connect, literal, translated_errors
from multilang.store.redis_client import place as described

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.state.owner import OwnedPlace

SAVE_SECS = 2.0  # how long a save waits for Redis; what is not saved now is saved later
# ARGV: the epoch, the position, the number of this save.
_SAVE = (
    NUMBER
    + """\
local epoch, owner, step = unpack(redis.call('HMGET', KEYS[1], 'epoch', 'owner', 'step'))
if not epoch then return {'gone'} end
if epoch ~= ARGV[1] then return {'fenced', owner} end
step = number(step, 'step')
if step >= tonumber(ARGV[3]) then return {'done', step} end
redis.call('HSET', KEYS[1], 'position', ARGV[2], 'step', ARGV[3], 'saved', epoch)
return {'done', tonumber(ARGV[3])}
"""
)
# ARGV: the epoch, the number of this step.
_REMOVE = (
    NUMBER
    + """\
local epoch, owner, step = unpack(redis.call('HMGET', KEYS[1], 'epoch', 'owner', 'step'))
if not epoch then return {'gone'} end
if epoch ~= ARGV[1] then return {'fenced', owner} end
step = number(step, 'step')
if step >= tonumber(ARGV[2]) then return {'done', step} end
redis.call('HDEL', KEYS[1], 'position')
redis.call('HSET', KEYS[1], 'step', ARGV[2])
return {'done', tonumber(ARGV[2])}
"""
)


class RedisPositions(PositionStore):
    """Positions in Redis, which tasks on all machines reach."""

    form = access.FORM

    requires: Mapping[str, str] = REQUIRES

    def __init__(self, conf: Mapping[str, Any], name: str, place: Mapping[str, Any]) -> None:
        super().__init__(conf, name, place)
        self._settings = access.with_access(conf, place)
        self._where = described(place)
        self._key = f"$position:{self.name}"
        self._client: Any = None
        self._step = 0  # the number of the last save

    @classmethod
    def place_of(cls, url: str) -> dict[str, Any]:
        return access.place_of(url)

    def check_permitted(self) -> None:
        """Raise NotPermittedError if this user of Redis may not claim the position. Nothing is changed."""
        place = self._place()
        try:
            place.beat(-1)
        finally:
            place.close()

    def close(self) -> None:
        super().close()
        if self._client is not None:
            self._client.close()
            self._client = None

    def _connect(self, patience: float | None) -> Any:
        return connect(self._settings, "a spout's position in Redis", patience)

    def _place(self) -> OwnedPlace:
        keys = self._key, f"{self._key}$beats"
        told = self._key, "saved"
        return RedisPlace(keys, self._connect, f"the position of {self.name!r}", self._where, POSITIONS, told)

    def _load(self) -> str | None:
        self._client = self._connect(SAVE_SECS)
        with translated_errors(self._where, POSITIONS):
            found, step = self._client.hmget(self._key, "position", "step")
        try:
            self._step = int(step or 0)
        except ValueError:
            raise StoreGoneError(
                f"{self._where}: 'step' of {self._key!r} is {step!r}, and no number: it was changed by hand, or damaged. Put it back, or "
                "remove the key to start from nothing"
            ) from None
        return None if found is None else str(found.decode())

    def _save(self, text: str, epoch: int) -> None:
        self._do(_SAVE, epoch, text)

    def _remove(self, epoch: int) -> None:
        self._do(_REMOVE, epoch)

    def _all(self, start: str) -> dict[str, str]:
        client = self._client or self._connect(SAVE_SECS)
        found = {}
        try:
            with translated_errors(self._where, POSITIONS):
                for key in client.scan_iter(match=f"{literal(f'$position:{start}')}*", count=AT_ONCE):
                    if client.type(key) == b"hash" and (text := client.hget(key, "position")) is not None:
                        found[key.decode().removeprefix("$position:")] = text.decode()
        finally:
            if client is not self._client:
                client.close()
        return found

    def _do(self, script: str, epoch: int, *values: str) -> None:
        self._step += 1
        with translated_errors(self._where, POSITIONS):
            said, *found = self._client.eval(script, 1, self._key, epoch, *values, self._step)
        if said == b"gone":
            raise self._gone(self._where)
        if said == b"fenced":
            raise self._fenced(Owner.from_text(found[0]), self._where)
        if int(found[0]) != self._step:
            raise StoreGoneError(
                f"{self._where}: {self._key!r} was changed by somebody else: it says that save {int(found[0])} was done, and {self._step} is "
                "the next. Put it back, or remove it to start from nothing"
            )

"""The owner of something in Redis: ``epoch`` and ``owner`` in one hash, its beats in a key of their own."""

from __future__ import annotations

from multilang.state.owner import OwnedPlace, Owner
from multilang.state.redis_client import explained

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

HASTE_SECS = 3.0  # that Redis is waited for where somebody waits for the answer, or the answer matters little

# KEYS: owner, beats.
_OWN = """\
local epoch, owner = unpack(redis.call('HMGET', KEYS[1], 'epoch', 'owner'))
if owner == ARGV[3] then return 1 end
if (epoch or '0') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'epoch', ARGV[2], 'owner', ARGV[3])
return 1
"""
_BEAT = """\
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 0 end
return redis.call('INCR', KEYS[2])
"""


class RedisPlace(OwnedPlace):
    """``keys``: of the owner's hash and of the beats; ``connect``: a new connection, of so many seconds' patience (None: the usual).

    ``what`` is owned, ``where``; ``setting``: in which the user says so.
    """

    def __init__(
        self, keys: tuple[str, str], connect: Callable[[float | None], Any], what: str, where: str, setting: str
    ) -> None:
        self.elsewhere = f"{self.elsewhere} in {setting}"
        self._keys = keys
        self._what = what
        self._where = where
        self._patient = connect(None)
        self._hasty = connect(HASTE_SECS)  # to beat, and to let go of it

    def owner(self) -> Owner | None:
        with explained(self._where):
            text = self._patient.hget(self._keys[0], "owner")
        return None if text is None else Owner.from_text(text)

    def beats(self) -> Any:
        with explained(self._where):
            return self._patient.get(self._keys[1])

    def replace(self, epoch: int, owner: Owner) -> bool:
        client = self._hasty if owner.ended else self._patient
        with explained(self._where):
            return bool(client.eval(_OWN, 2, *self._keys, epoch, owner.epoch, owner.text()))

    def beat(self, epoch: int) -> bool:
        with explained(self._where):
            return bool(self._hasty.eval(_BEAT, 2, *self._keys, epoch))

    def describe(self) -> str:
        return f"{self._what} in {self._where}"

    def close(self) -> None:
        self._patient.close()
        self._hasty.close()

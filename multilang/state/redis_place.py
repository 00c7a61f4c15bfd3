"""The owner of something in Redis: ``epoch`` and ``owner`` are in one hash, the heartbeat in a key of its own."""

from __future__ import annotations

from multilang.state.errors import StateError
from multilang.state.owner import OwnedPlace, Owner
from multilang.store.redis_client import translated_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

HASTE_SECS = 3.0  # patience with Redis when a user waits for the answer, or when the answer matters little

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
    """A place in Redis that has an owner.

    Args:
        keys: The key of the owner's hash, and the key that counts beats.
        connect: Returns a new connection with so many seconds of patience (None: the usual).
        what: The thing that is owned, for messages.
        where: The server, for messages.
        setting: The setting that names the server, for messages.
        told: A key and its field with the highest epoch of what is stored.
    """

    def __init__(
        self,
        keys: tuple[str, str],
        connect: Callable[[float | None], Any],
        what: str,
        where: str,
        setting: str,
        told: tuple[str, str],
    ) -> None:
        self.elsewhere = f"{self.elsewhere} in {setting}"
        self._keys = keys
        self._what = what
        self._where = where
        self._told = told
        self._patient = connect(None)
        self._hasty = connect(HASTE_SECS)  # for beats and for the release

    def owner(self) -> Owner | None:
        with translated_errors(self._where):
            text = self._patient.hget(self._keys[0], "owner")
        try:
            return None if text is None else Owner.from_text(text)
        except ValueError:
            raise StateError(
                f"{self._where}: 'owner' in {self._keys[0]!r} is {text!r}, and no owner: it was changed by hand, or damaged. Put it "
                "back, or remove this field if nobody uses the place"
            ) from None

    def beats(self) -> Any:
        with translated_errors(self._where):
            return self._patient.get(self._keys[1])

    def written_epoch(self) -> int:
        with translated_errors(self._where):
            return int(self._patient.hget(*self._told) or 0)

    def replace(self, epoch: int, owner: Owner) -> bool:
        client = self._hasty if owner.ended else self._patient
        with translated_errors(self._where):
            return bool(client.eval(_OWN, 2, *self._keys, epoch, owner.epoch, owner.text()))

    def beat(self, epoch: int) -> bool:
        with translated_errors(self._where):
            return bool(self._hasty.eval(_BEAT, 2, *self._keys, epoch))

    def describe(self) -> str:
        return f"{self._what} in {self._where}"

    def close(self) -> None:
        self._patient.close()
        self._hasty.close()

"""A map in Redis. It is apart, so that only who uses it imports what it needs."""

from __future__ import annotations

from multilang.store.redis import RedisStore
from multilang.store.redis_access import settings
from multilang.store.redis_client import REQUIRES
from multilang.transactional.maps.backing import Backing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class RedisBacking(Backing):
    """A map in Redis. A Redis that is being started again is waited for, up to 20 seconds. Needs the extra ``redis``.

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

    def __init__(
        self,
        name: str,
        host: str = "localhost",
        port: int = 6379,
        database: int = 0,
        timeout: int = 2000,
        access: Mapping[str, Any] | None = None,
    ) -> None:
        where = settings(host, port, database, timeout, access)
        super().__init__(RedisStore("redis:", setting="the RedisBacking", settings=where), name)

"""A map in Redis. It is apart, so that only its users import ``redis``."""

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
    """A map in Redis. It waits up to 20 seconds for a Redis that restarts. Needs the extra ``redis``.

    Args:
        name: The map's name.
        host: The server's host.
        port: The server's port.
        database: The number of the database.
        timeout: Milliseconds that an answer may take.
        access: The credentials, if the server authenticates its clients: ``user``, ``password`` (a Secret, or its place),
            ``tls``, ``ca``, ``cert`` and ``key``, each optional; a missing password is that in the environment,
            ``MULTILANG_REDIS_PASSWORD``.
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

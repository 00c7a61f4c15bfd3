"""Authentication at a Redis: a user and its password, and TLS with the authorities that are trusted.

A place has these members beside its host and port. The conf key ``multilang.redis.access`` has them for all places that
lack them, and the environment a password.
"""

from __future__ import annotations

import os
from urllib.parse import parse_qsl, unquote, urlsplit

from multilang.component.errors import ConfigError
from multilang.helpers.secret import Secret
from multilang.settings import REDIS_ACCESS, REDIS_MEMBERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PASSWORD = "MULTILANG_REDIS_PASSWORD"  # in the environment, so that no conf need have it
FORM = "redis://HOST:PORT/DATABASE, or rediss://USER@HOST:PORT/DATABASE?ca=FILE"
_PATHS = ("ca", "cert", "key")


def settings(
    host: str, port: int, database: int, timeout: int, access: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a place, for a component that gets its members one by one.

    Args:
        host: The server's host.
        port: The server's port.
        database: The number of the database.
        timeout: Milliseconds that an answer may take.
        access: The credentials, see ``checked``.

    Raises:
        ConfigError: The credentials are wrong.
    """
    reached = {"host": host, "port": port, "database": database, "timeout": timeout}
    return {**reached, **checked(access or {}, "access")}


def with_access(conf: Mapping[str, Any], place: Mapping[str, Any]) -> dict[str, Any]:
    """Return a place whose missing members are those of the conf's ``multilang.redis.access``.

    Raises:
        ConfigError: The key has something else than such members.
    """
    given = conf.get(REDIS_ACCESS)
    if given is None:
        return dict(place)
    if not isinstance(given, dict):
        raise ConfigError(
            f"{REDIS_ACCESS} is of type {type(given).__name__}; write an object with {', '.join(REDIS_MEMBERS)}"
        )
    return {**checked(given, REDIS_ACCESS), **place}


def checked(members: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return the members that are given, with the password as a Secret.

    Args:
        members: Some of ``user``, ``password``, ``tls``, ``ca``, ``cert`` and ``key``.
        what: The place of the members, in the words of a message.

    Raises:
        ConfigError: There is another one, or one has a value that it can't have.
    """
    found: dict[str, Any] = {}
    for name, value in members.items():
        if name not in REDIS_MEMBERS:
            raise ConfigError(f"{what} knows no {name!r}; it has {', '.join(REDIS_MEMBERS)}")
        if value is None:
            continue
        if name == "password":
            found[name] = Secret(value, f"{what}.password")
        elif name == "tls":
            if type(value) is not bool:
                raise ConfigError(f"{what}.tls is {value!r}; use true or false")
            found[name] = value
        elif type(value) is not str or not value:
            raise ConfigError(f"{what}.{name} is {value!r}; use {'a path' if name in _PATHS else 'text'}")
        else:
            found[name] = value
    if "cert" in found or "key" in found or "ca" in found:
        if found.get("tls") is False:
            raise ConfigError(f"{what}.tls is false, and there are certificates: leave one of the two out")
        found["tls"] = True
    if "key" in found and "cert" not in found:
        raise ConfigError(f"{what}.key is {found['key']!r}, and {what}.cert is missing: a key needs its certificate")
    return found


def place_of(url: str) -> dict[str, Any]:
    """Return the place that a URL names: host, port, database, and the members of ``checked``.

    Args:
        url: ``redis://USER@HOST:PORT/DATABASE``, or with TLS ``rediss://...?ca=FILE&cert=FILE&key=FILE``.

    Raises:
        ValueError: It is no such URL, or has a password, which everybody who reads the conf would see.
    """
    found = urlsplit(url)
    scheme, database = found.scheme.lower(), found.path.strip("/") or "0"
    if scheme not in ("redis", "rediss") or not found.hostname or found.fragment or not database.isdecimal():
        raise ValueError(f"its form is {FORM}")
    if found.password is not None:
        raise ValueError(f"a password belongs into {REDIS_ACCESS}, or into the environment, {PASSWORD}")
    given: dict[str, Any] = dict(parse_qsl(found.query, keep_blank_values=True, strict_parsing=bool(found.query)))
    unknown = [name for name in given if name not in _PATHS]
    if unknown or (given and scheme == "redis"):
        raise ValueError(f"its form is {FORM}")
    if found.username:
        given["user"] = unquote(found.username)
    if scheme == "rediss":
        given["tls"] = True
    place = {"host": found.hostname, "port": found.port or 6379, "database": int(database)}
    return {**place, **checked(given, "the URL")}


def options(place: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of redis-py's clients for a place's credentials. The password is read now.

    Raises:
        ConfigError: The password, or a file, can't be read.
    """
    password = place.get("password")
    secret = Secret(password, "the password of Redis").reveal() if password is not None else os.environ.get(PASSWORD)
    found: dict[str, Any] = {"username": place.get("user"), "password": secret}
    if not place.get("tls"):
        return found
    for name in _PATHS:
        path = place.get(name)
        if path is not None and not os.access(path, os.R_OK):
            raise ConfigError(f"{name} of Redis is {path!r}, which can't be read here: put it there, or name another")
    return {
        **found,
        "ssl": True,
        "ssl_cert_reqs": "required",
        "ssl_check_hostname": True,
        "ssl_ca_certs": place.get("ca"),
        "ssl_certfile": place.get("cert"),
        "ssl_keyfile": place.get("key"),
    }

"""The login DIGEST-MD5 (RFC 2831): user and password, of which the password is never sent.

It is implemented here because a DRPC spout logs in, too, and a cluster's workers have no packages.
"""

from __future__ import annotations

import re
from hashlib import md5
from hmac import compare_digest
from secrets import token_hex

from multilang.component.errors import ConfigError
from multilang.transport.jaas import FILE, read_section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

CLIENT = "StormClient"  # the section of Storm's clients
SERVICE = "storm_thrift_server"
_DIRECTIVE = re.compile(r'\s*([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^",\s]+))\s*(?:,|$)', re.DOTALL)


class DigestMd5:
    """The client's part of one login.

    Args:
        user: The user.
        password: The password, which no message shows.
        service: The name of the service in the digest.
        nonce: The client's nonce; None: a random one.
        source: The file that has the user and password, for messages.
    """

    name = "DIGEST-MD5"

    def __init__(self, user: str, password: str, service: str, nonce: str | None = None, source: str = "") -> None:
        self.who = f"{user!r} (section {CLIENT} of {source})" if source else repr(user)
        self._user = user
        self._password = password
        self._service = service
        self._uri = ""
        self._nonce = token_hex(16) if nonce is None else nonce
        self._expected: str | None = None

    def start(self) -> bytes:
        """Return nothing: the server begins."""
        return b""

    def step(self, challenge: bytes) -> bytes:
        """Return the digest that answers the server's challenge."""
        if self._expected is not None:
            raise PermissionError("asks for the digest twice")
        directives = parse(challenge)
        if "nonce" not in directives or directives.get("algorithm", "md5-sess").lower() != "md5-sess":
            raise PermissionError("sent a challenge that is not of DIGEST-MD5")
        if "auth" not in [each.strip() for each in directives.get("qop", "auth").split(",")]:
            raise PermissionError(
                "wants to sign or encrypt what follows the login (its qop has no auth), which Storm's plugins never ask for"
            )
        utf8 = directives.get("charset", "").lower() == "utf-8"
        realm, nonce = directives.get("realm", ""), directives["nonce"]
        # A server of Storm's calls itself "localhost" on every host, and so its realm; it refuses any other name in the digest.
        self._uri = f"{self._service}/{realm or 'localhost'}"
        secret = self._secret(realm, utf8)
        self._expected = self._digest(secret, nonce, "")
        answer = {
            "username": self._user,
            "realm": realm,
            "nonce": nonce,
            "cnonce": self._nonce,
            "digest-uri": self._uri,
        }
        text = ",".join(f'{name}="{_quoted(value)}"' for name, value in answer.items())
        text += f",nc=00000001,qop=auth,response={self._digest(secret, nonce, 'AUTHENTICATE')}"
        return (text + ",charset=utf-8" * utf8).encode("utf-8" if utf8 else "latin-1")

    def finish(self, challenge: bytes) -> None:
        """Check that the server knows the password, too."""
        proof = parse(challenge).get("rspauth", "")
        if self._expected is None or not compare_digest(proof.encode(), self._expected.encode()):
            raise PermissionError(
                f"does not know the password of {self._user!r} itself: it is not the server that it claims to be"
            )

    def _secret(self, realm: str, utf8: bool) -> bytes:
        parts = self._user, realm, self._password
        try:
            # RFC 2831, 2.1.2.1: even with UTF-8, what fits into Latin-1 is hashed so.
            whole = ":".join(parts).encode("latin-1")
        except UnicodeEncodeError:
            if not utf8:
                raise PermissionError("takes no users and passwords with letters beyond Latin-1") from None
            whole = ":".join(parts).encode()
        return md5(whole, usedforsecurity=False).digest()

    def _digest(self, secret: bytes, nonce: str, method: str) -> str:
        first = _hex(secret + f":{nonce}:{self._nonce}".encode())
        second = _hex(f"{method}:{self._uri}".encode())
        return _hex(f"{first}:{nonce}:00000001:{self._nonce}:auth:{second}".encode())


def digest_login(conf: Mapping[str, Any]) -> Callable[[str], DigestMd5]:
    """Return a function that makes a login with the user and password of the conf's JAAS file, which it reads each time."""

    def login(_: str) -> DigestMd5:
        options = read_section(conf, CLIENT)
        for name in ("username", "password"):
            if not options.get(name):
                raise ConfigError(
                    f'section {CLIENT} of the JAAS file {conf[FILE]} has no {name}, which a login by digest needs: {name}="..."'
                )
        return DigestMd5(options["username"], options["password"], SERVICE, source=conf[FILE])

    return login


def parse(challenge: bytes) -> dict[str, str]:
    """Return the directives of a challenge. Raises PermissionError for what is none."""
    text = challenge.decode("utf-8", "replace")
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _DIRECTIVE.match(text, at)
        if match is None or match.end() == at:
            raise PermissionError("sent a challenge that can't be read")
        name, quoted, plain = match.groups()
        found.setdefault(name.lower(), plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
        at = match.end()
    return found


def _quoted(text: str) -> str:
    return re.sub(r'(["\\])', r"\\\1", text)


def _hex(data: bytes) -> str:
    return md5(data, usedforsecurity=False).hexdigest()

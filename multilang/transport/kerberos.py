"""The login by Kerberos (GSSAPI, RFC 4752), with a keytab or the user's ticket, by the JAAS file.

Needs the extra ``kerberos``, whose package gssapi needs the system's Kerberos libraries.
"""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.helpers.extras import imported
from multilang.transport.digest import CLIENT, SERVICE
from multilang.transport.jaas import FILE, read_section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_NO_LAYER = 1  # the bit of "neither signed nor encrypted" among those that the server offers
_SYSTEM = ", which needs the system's Kerberos (Debian: apt-get install gcc libkrb5-dev)"


class Gssapi:
    """The client's part of one login.

    Args:
        service: The first part of the server's principal, before its host.
        host: The server's host.
        options: The options of the JAAS file's section.
        as_user: The user to act as; "": the one who logs in.
    """

    name = "GSSAPI"

    def __init__(self, service: str, host: str, options: Mapping[str, str], as_user: str) -> None:
        gssapi = imported("gssapi", "kerberos", "a login by Kerberos", more=_SYSTEM)
        self._errors = gssapi.exceptions.GSSError
        self._as_user = as_user
        self._peer = f"{service}@{host}"
        self.who = options.get("principal") or "the user's ticket"
        try:
            self._context = gssapi.SecurityContext(
                name=gssapi.Name(self._peer, gssapi.NameType.hostbased_service),
                creds=gssapi.Credentials(usage="initiate", **_found(gssapi, options)),
                usage="initiate",
                flags=gssapi.RequirementFlag.mutual_authentication | gssapi.RequirementFlag.integrity,
            )
        except self._errors as error:
            raise PermissionError(
                f"can't be logged in to: {_text(error)}; run kinit, or name a keytab and its principal in {CLIENT}"
            ) from None
        self._agreed = False

    def start(self) -> bytes:
        """Return the first token."""
        return self._token(None)

    def step(self, challenge: bytes) -> bytes:
        """Return the next token, or at last the choice of no security layer."""
        if not self._context.complete:
            return self._token(challenge)
        try:
            offered = self._context.unwrap(challenge).message
            if len(offered) != 4 or not offered[0] & _NO_LAYER:
                raise PermissionError(
                    "wants to sign or encrypt what follows the login, which Storm's plugins never ask for"
                )
            self._agreed = True
            return bytes(self._context.wrap(bytes((_NO_LAYER, 0, 0, 0)) + self._as_user.encode(), False).message)
        except self._errors as error:
            raise PermissionError(f"sent something that its ticket does not fit: {_text(error)}") from None

    def finish(self, challenge: bytes) -> None:
        """Check that the server authenticated itself."""
        if not self._context.complete or not self._agreed:
            raise PermissionError(f"did not prove that it is {self._peer}")

    def _token(self, challenge: bytes | None) -> bytes:
        try:
            return self._context.step(challenge) or b""
        except self._errors as error:
            raise PermissionError(f"can't be logged in to as {self._peer}: {_text(error)}") from None


def kerberos_login(conf: Mapping[str, Any], as_user: str) -> Callable[[str], Gssapi]:
    """Return a function that makes a login with the keytab, or the ticket, that the conf's JAAS file names."""

    def login(host: str) -> Gssapi:
        options = read_section(conf, CLIENT)
        if _is_true(options, "useKeyTab") and not (options.get("keyTab") and options.get("principal")):
            raise ConfigError(
                f"section {CLIENT} of the JAAS file {conf[FILE]} has useKeyTab, and needs keyTab and principal, too"
            )
        return Gssapi(options.get("serviceName") or SERVICE, host, options, as_user)

    return login


def _found(gssapi: Any, options: Mapping[str, str]) -> dict[str, Any]:
    """Return the place of the credentials: a keytab, a ticket cache, or the system's default."""
    found: dict[str, Any] = {}
    if options.get("principal"):
        found["name"] = gssapi.Name(options["principal"], gssapi.NameType.kerberos_principal)
    if _is_true(options, "useKeyTab"):
        found["store"] = {"client_keytab": options["keyTab"], "ccache": f"MEMORY:multilang-{id(options)}"}
    elif options.get("ticketCache"):
        found["store"] = {"ccache": options["ticketCache"]}
    return found


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == "true"


def _text(error: Exception) -> str:
    return " ".join(str(error).split())

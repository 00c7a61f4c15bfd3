"""TLS, from the key stores that a conf names: PEM, or PKCS #12 by the extra ``tls``."""

from __future__ import annotations

import os
import ssl
from contextlib import contextmanager
from secrets import token_hex
from tempfile import NamedTemporaryFile

from multilang.component.errors import ConfigError
from multilang.helpers.extras import imported
from multilang.transport.base import Transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from typing import Any

    from multilang.helpers.secret import Secret

_PEM = b"-----BEGIN "
_JKS = bytes.fromhex("feedfeed")


class Stores:
    """The files of a TLS client, and the conf keys that name them, for errors.

    Args:
        trusted: The key and the path of the certificates that are trusted; path None: those of the system.
        trusted_password: The password of that file.
        own: The key and the path of the client's own certificate and key; path None: none.
        own_password: The password of that file.
        private: The path of the client's private key, if ``own`` is a PEM file without it.
    """

    def __init__(
        self,
        trusted: tuple[str, str | None],
        trusted_password: Secret | None = None,
        own: tuple[str, str | None] = ("", None),
        own_password: Secret | None = None,
        private: str | None = None,
    ) -> None:
        self.trusted = trusted
        self.trusted_password = trusted_password
        self.own = own
        self.own_password = own_password
        self.private = private


class Tls(Transport):
    """TLS 1.2 or newer, with the server's certificate and host checked. Thrift's messages have no frames (Storm's TlsTransportPlugin).

    Args:
        stores: The client's files, which are read at each connection, so that new certificates are used.
        check_host: Whether the server's certificate must name its host.
    """

    framed = False

    def __init__(self, stores: Stores, check_host: bool = True) -> None:
        self._stores = stores
        self._check_host = check_host

    def check(self) -> None:
        """Read the files once. Raises ConfigError for one that can't be used."""
        client_context(self._stores, self._check_host)

    def open(self, wire: socket.socket, host: str) -> socket.socket:
        context = client_context(self._stores, self._check_host)
        try:
            return context.wrap_socket(wire, server_hostname=host)
        except ssl.SSLCertVerificationError as error:
            raise PermissionError(
                f"has a certificate that is not trusted ({error.verify_message}); see {self._stores.trusted[0]}"
            ) from None
        except ssl.SSLError as error:
            raise PermissionError(f"does not agree on TLS: {error.reason or error}") from None


def client_context(stores: Stores, check_host: bool = True) -> ssl.SSLContext:
    """Return the settings of a TLS client.

    Args:
        stores: The client's files.
        check_host: Whether the server's certificate must name its host.

    Raises:
        ConfigError: A file can't be read. No error shows a password.
    """
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = check_host
    key, path = stores.trusted
    if path is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = check_host
        with _as_pem(key, path, stores.trusted_password, only_certificates=True) as (pem, _):
            try:
                context.load_verify_locations(pem)
            except ssl.SSLError:
                raise ConfigError(f"{key} is {path}, which holds no certificates") from None
    key, path = stores.own
    if path is not None:
        with _as_pem(key, path, stores.own_password) as (pem, password):
            try:
                context.load_cert_chain(pem, stores.private, password or "")
            except OSError as error:  # SSLError is one
                raise ConfigError(
                    f"{key} is {path}: the client's certificate and key can't be used ({getattr(error, 'reason', None) or error.strerror}); "
                    "is its password right, and does the key belong to the certificate?"
                ) from None
    return context


@contextmanager
def _as_pem(
    key: str, path: str, password: Secret | None, only_certificates: bool = False
) -> Iterator[tuple[str, str | None]]:
    """Yield a PEM file with the content of a store, and the password of the private key in it."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ConfigError(f"{key} is {path}, which can't be read: {error.strerror}") from None
    if _PEM in data:
        yield path, password.reveal() if password else None
        return
    if data.startswith(_JKS):
        raise ConfigError(
            f"{key} is {path}, a Java key store, which only Java reads; make a PKCS #12 file of it, which Storm reads, too: "
            f"keytool -importkeystore -srckeystore {path} -destkeystore {os.path.splitext(path)[0]}.p12 -deststoretype PKCS12"
        )
    once = token_hex(16)
    with NamedTemporaryFile(
        suffix=".pem"
    ) as file:  # of mode 0600; the key in it is encrypted by a password that is never written
        file.write(_from_pkcs12(key, path, data, password, None if only_certificates else once))
        file.flush()
        yield file.name, once


def _from_pkcs12(key: str, path: str, data: bytes, password: Secret | None, once: str | None) -> bytes:
    imported("cryptography", "tls", f"{key} is {path}, a PKCS #12 file, and reading it", more=", or name a PEM file")
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    try:
        store: Any = load_pkcs12(data, password.reveal().encode() if password else None)
    except ValueError:
        raise ConfigError(f"{key} is {path}, which is no PKCS #12 file, or has another password (not shown)") from None
    chain = [each for each in (store.cert, *store.additional_certs) if each is not None]
    pem = b"".join(each.certificate.public_bytes(Encoding.PEM) for each in chain)
    if not pem or (once and store.key is None):
        raise ConfigError(f"{key} is {path}, which holds no {'certificate' if not pem else 'private key'}")
    if once:
        pem += store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(once.encode()))
    return pem

"""The choice of a transport by Storm's own keys, for each kind of daemon."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.helpers.secret import secret_of
from multilang.transport.base import PLAIN, Transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

ALL = "storm.thrift.transport"  # of every daemon without a key of its own
USE_TLS = "nimbus.thrift.client.use.tls"
AS_USER = "storm.doAsUser"
_TLS_PLUGIN = "nimbus.thrift.tls.transport"
_TLS_CLIENT = _TLS_PLUGIN.replace("transport", "client.")
_PACKAGE = "org.apache.storm.security.auth."
SIMPLE = f"{_PACKAGE}SimpleTransportPlugin"
DIGEST = f"{_PACKAGE}digest.DigestSaslTransportPlugin"
KERBEROS = f"{_PACKAGE}kerberos.KerberosSaslTransportPlugin"
TLS = f"{_PACKAGE}tls.TlsTransportPlugin"


_CHOOSE = {  # the keys that choose a daemon's transport
    each.lower(): each
    for each in (
        *(ALL, USE_TLS, AS_USER, _TLS_PLUGIN, "nimbus.thrift.transport", "drpc.thrift.transport"),
        *("drpc.invocations.thrift.transport", "java.security.auth.login.config"),
    )
}


def nimbus(conf: Mapping[str, Any]) -> Transport:
    """Return the transport to Nimbus. Raises ConfigError for settings that can't be obeyed."""
    _check_spelling(conf)
    if not uses_tls(conf):
        return _by_plugin(conf, "nimbus.thrift.transport")
    plugin = conf.get(_TLS_PLUGIN) or TLS
    if plugin != TLS:
        raise ConfigError(f"{_TLS_PLUGIN} is {plugin!r}, which is not known here; TLS is {TLS}")
    _check_user(conf, TLS)
    return _tls(conf)


def drpc(conf: Mapping[str, Any]) -> Transport:
    """Return the transport of a DRPC server's clients. Raises ConfigError for settings that can't be obeyed."""
    return _by_plugin(conf, "drpc.thrift.transport")


def drpc_invocations(conf: Mapping[str, Any]) -> Transport:
    """Return the transport between a topology and a DRPC server. Raises ConfigError for settings that can't be obeyed."""
    return _by_plugin(conf, "drpc.invocations.thrift.transport")


def uses_tls(conf: Mapping[str, Any]) -> bool:
    """Return whether Nimbus is reached by TLS, at its port for TLS."""
    return flag(conf, USE_TLS, False)


def flag(conf: Mapping[str, Any], key: str, otherwise: bool) -> bool:
    """Return a setting that is true or false; YAML and properties may have it as text. Raises ConfigError."""
    value = conf.get(key)
    if value is None:
        return otherwise
    found = {"true": True, "false": False}.get(str(value).strip().lower()) if isinstance(value, bool | str) else None
    if found is None:
        raise ConfigError(f"{key} is {value!r}; write true or false")
    return found


def text(conf: Mapping[str, Any], key: str) -> str | None:
    """Return a setting that is text; None if it is not there, or empty. Raises ConfigError."""
    value = conf.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise ConfigError(f"{key} is {value!r}; write text, in quotation marks")
    return value


def _check_spelling(conf: Mapping[str, Any]) -> None:
    """Refuse a misspelt key for the choice of a transport, which would be ignored: the transport would then be plain."""
    for key, is_whole in _written(conf):
        meant = _CHOOSE.get(key.strip().lower().replace("_", ".").replace("-", "."))
        if meant is not None and not (is_whole and meant == key):
            how = (
                "no key of Storm's"
                if is_whole
                else "made of mappings within mappings, which Storm does not read as one key"
            )
            raise ConfigError(f"{key!r} is {how}, and would be ignored, without a login or TLS; write {meant}: VALUE")


def _written(conf: Mapping[Any, Any], before: str = "", levels: int = 8) -> Iterator[tuple[str, bool]]:
    """Return the keys as their author may have meant them: of ``storm: {thrift: {transport: X}}`` all parts, with dots between.

    Args:
        conf: The entries.
        before: The keys of the mappings around them, each with a dot.
        levels: The most levels of mappings that are read; no key of Storm's has more parts.

    Returns:
        Each key, and whether it is written as one.
    """
    for key, value in conf.items():
        yield f"{before}{key}", not before
        if levels and isinstance(value, dict):
            yield from _written(value, f"{before}{key}.", levels - 1)


def _by_plugin(conf: Mapping[str, Any], own: str) -> Transport:
    _check_spelling(conf)
    key = own if conf.get(own) else ALL
    plugin = conf.get(key) or SIMPLE
    as_user = _check_user(conf, plugin)
    if plugin == SIMPLE:
        return PLAIN
    from multilang.transport.sasl import Sasl

    if plugin == DIGEST:
        from multilang.transport.digest import digest_login

        return Sasl(digest_login(conf))
    if plugin == KERBEROS:
        from multilang.transport.kerberos import kerberos_login

        return Sasl(kerberos_login(conf, as_user))
    raise ConfigError(
        f"{key} is {plugin!r}, which is not known here, and nothing is sent in another way; known are {SIMPLE}, {DIGEST}, {KERBEROS}, "
        f"and for Nimbus TLS ({USE_TLS}: true)"
    )


def _check_user(conf: Mapping[str, Any], plugin: object) -> str:
    as_user = text(conf, AS_USER) or ""
    if as_user and plugin != KERBEROS:
        raise ConfigError(
            f"{AS_USER} is {as_user!r}, and only Kerberos can act for another user, not {plugin}: leave the key out"
        )
    return as_user


def _tls(conf: Mapping[str, Any]) -> Transport:
    from multilang.transport.tls import Stores, Tls

    client = _TLS_CLIENT
    own = f"{client}cert.path"
    private = text(conf, f"{client}key.path")
    if not text(conf, own):
        own, private = f"{client}keystore.path", None
    elif private is None:
        raise ConfigError(
            f"{own} is {conf[own]!r} and {client}key.path is missing: a certificate needs its private key"
        )
    if flag(conf, f"{client}auth.required", False) and not text(conf, own):
        raise ConfigError(
            f"{client}auth.required is true, and there is no certificate: name it in {client}keystore.path, or in {client}cert.path and "
            f"{client}key.path"
        )
    trusted = f"{client}truststore.path"
    return Tls(
        Stores(
            (trusted, text(conf, trusted)),
            secret_of(conf, f"{client}truststore.password"),
            (own, text(conf, own)),
            secret_of(conf, f"{client}keystore.password"),
            private,
        )
    )

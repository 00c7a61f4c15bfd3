"""The credentials with which a topology is submitted: its login at ZooKeeper, and what its workers' plugins get."""

from __future__ import annotations

import json
import secrets
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multilang.component.errors import ConfigError
from multilang.helpers.secret import secret_of
from multilang.shipping.errors import ShippingError

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEME = "storm.zookeeper.topology.auth.scheme"
PAYLOAD = "storm.zookeeper.topology.auth.payload"
PLUGINS = "topology.auto-credentials"
SSL_FILES = "ssl.credential.files"
_AUTO_SSL = "org.apache.storm.security.auth.AutoSSL"
_AUTO_TGT = "org.apache.storm.security.auth.kerberos.AutoTGT"
_TGT = "TGT"  # the credential that AutoTGT reads in the workers


def with_zookeeper_login(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Return a topology's conf with a login at ZooKeeper, by which its nodes belong to it alone.

    Storm's own client adds one to every topology. A Nimbus whose ZooKeeper has no logins takes it away again; one whose
    ZooKeeper has refuses topologies without it.

    Args:
        conf: The conf; its own login stays, and one that names a place is read there, as Storm takes text only.

    Raises:
        ShippingError: The conf's own login can't be read.
    """
    try:
        own = secret_of(conf, PAYLOAD)
        payload = own.reveal() if own else f"{secrets.randbits(63)}:{secrets.token_hex(16)}"
    except ConfigError as error:
        raise ShippingError(str(error)) from None
    return {**conf, SCHEME: conf.get(SCHEME) or "digest", PAYLOAD: payload}


def credentials_of(conf: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, str]:
    """Return the credentials that the plugins of ``topology.auto-credentials`` make, and those that were given.

    Plugins that Nimbus or the worker runs, such as AutoHDFS, make none here.

    Args:
        conf: The conf of the topology over that of storm.yaml.
        given: Credentials that were given, which win.

    Raises:
        ShippingError: A plugin needs what only Java has, or a file can't be read.
    """
    plugins = conf.get(PLUGINS) or []
    if not isinstance(plugins, list) or not all(isinstance(each, str) for each in plugins):
        raise ShippingError(f"{PLUGINS} is {plugins!r}; write a list of classes")
    made: dict[str, str] = {}
    if _AUTO_SSL in plugins:
        made = {Path(each).name: _read(each) for each in _ssl_files(conf)}
    if _AUTO_TGT in plugins and _TGT not in given:
        raise ShippingError(
            f"{PLUGINS} names {_AUTO_TGT}, which sends the user's Kerberos ticket as a Java object, so that only Storm's own client can: "
            f"leave it out (-c {PLUGINS}=[]), and give the workers a keytab"
        )
    return {**made, **given}


def read_credentials(path: Path) -> dict[str, str]:
    """Return the credentials in a JSON file. Raises ShippingError, which shows none of them."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ShippingError(
            f"{path} is no file of credentials: {getattr(error, 'strerror', None) or 'it is no JSON'}"
        ) from None
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise ShippingError(f'{path} is no file of credentials; write {{"name": "text", ...}}')
    return found


def _ssl_files(conf: Mapping[str, Any]) -> list[str]:
    files = conf.get(SSL_FILES) or []
    if isinstance(files, str):
        files = files.split(",")
    if not isinstance(files, list) or not all(isinstance(each, str) and each for each in files):
        raise ShippingError(f"{SSL_FILES} is {files!r}; write a list of paths")
    return files


def _read(path: str) -> str:
    try:
        return b64encode(Path(path).read_bytes()).decode()
    except OSError as error:
        raise ShippingError(f"{SSL_FILES} names {path}, which can't be read: {error.strerror}") from None

"""The addresses of Nimbus and the way to it, read from Storm's own configuration file as Storm's own client does."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multilang import transport
from multilang.component.errors import ConfigError
from multilang.helpers.extras import imported
from multilang.shipping.errors import ShippingError

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_PORT = 6627  # nimbus.thrift.port in Storm's defaults.yaml


@dataclass(frozen=True)
class Address:
    """Host and port of a Nimbus.

    Attributes:
        host: The host's name or address.
        port: The port; by default Storm's.
    """

    host: str
    port: int = DEFAULT_PORT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(text: str, default_port: int = DEFAULT_PORT) -> Address:
    """Parse ``"host"``, ``"host:port"`` or ``"[::1]:port"``. Raises ShippingError."""
    bracket = text.rfind("]")
    host, colon, port = text.rpartition(":") if text.rfind(":") > bracket else (text, "", str(default_port))
    if not colon:
        host, port = text, str(default_port)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ShippingError(f"{text!r} is not the address of a Nimbus; write host:port, as localhost:{DEFAULT_PORT}")
    return Address(host, int(port))


def conf_file(environment: Mapping[str, str] | None = None) -> Path | None:
    """Return the storm.yaml that Storm's client would read: the user's own, or that of ``STORM_CONF_DIR``, or None."""
    environment = os.environ if environment is None else environment
    folders = [Path(environment.get("HOME") or Path.home(), ".storm")]
    if environment.get("STORM_CONF_DIR"):
        folders.append(Path(environment["STORM_CONF_DIR"]))
    return next((folder / "storm.yaml" for folder in folders if (folder / "storm.yaml").is_file()), None)


def read_conf(path: Path) -> dict[str, Any]:
    """Return the entries of a storm.yaml. Raises ShippingError, with the file and the line."""
    yaml = imported(
        "yaml",
        "storm",
        f"reading {path}",
        package="PyYAML",
        error=ShippingError,
        more=", or name the Nimbus: --nimbus host:port",
    )
    try:
        conf = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:  # its text quotes what stands there, and this may be a password
        raise ShippingError(
            f"{path} can't be read: it is no YAML{_place(error)} (not shown, as it may be a secret); a value with : # @ * ! & or quotes "
            "in it belongs into quotation marks"
        ) from None
    except UnicodeDecodeError:
        raise ShippingError(f"{path} can't be read: it is not UTF-8") from None
    except OSError as error:
        raise ShippingError(f"{path} can't be read: {error}") from None
    if conf is None:
        return {}
    if not isinstance(conf, dict):
        raise ShippingError(f"{path} holds no entries KEY: VALUE")
    return conf


def _place(error: Any) -> str:
    mark = getattr(error, "problem_mark", None)
    return "" if mark is None else f" in line {mark.line + 1}, column {mark.column + 1}"


def addresses(conf: Mapping[str, Any], source: str) -> list[Address]:
    """Return ``nimbus.seeds`` with ``nimbus.thrift.port``, or with ``nimbus.thrift.tls.port`` if the conf asks for TLS.

    Raises ShippingError for wrong values, and for security settings that can't be met.
    """
    seeds = conf.get("nimbus.seeds", ["localhost"])
    if not isinstance(seeds, list) or not seeds or not all(isinstance(seed, str) and seed for seed in seeds):
        raise ShippingError(f"{source}: nimbus.seeds is {seeds!r}; write a list of host names")
    port = nimbus_port(conf, source)
    return [Address(seed, port) for seed in seeds]


def nimbus_port(conf: Mapping[str, Any], source: str) -> int:
    """Return the port of Nimbus by a conf. Raises ShippingError as ``addresses`` does."""
    try:
        transport.nimbus(conf)
        tls = transport.uses_tls(conf)
    except ConfigError as error:
        raise ShippingError(f"{source}: {error}") from None
    key, usual = ("nimbus.thrift.tls.port", None) if tls else ("nimbus.thrift.port", DEFAULT_PORT)
    port = conf.get(key, usual)
    if type(port) is not int or not 0 < port < 65536:
        raise ShippingError(f"{source}: {key} is {port!r}; write a port number")
    return port

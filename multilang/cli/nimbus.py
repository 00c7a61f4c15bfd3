"""The common part of all commands that use a cluster: the choice of the cluster, and the display of its errors."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from multilang.cli import exits
from multilang.cli.exits import fault
from multilang.shipping.errors import UNREACHABLE, ShippingError
from multilang.shipping.storm_yaml import (
    DEFAULT_PORT,
    Address,
    addresses,
    conf_file,
    nimbus_port,
    parse_address,
    read_conf,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus

NIMBUS = click.option(
    "--nimbus",
    "where",
    metavar="HOST:PORT",
    help="The cluster's Nimbus. Without it, the one in ~/.storm/storm.yaml, in the storm.yaml in STORM_CONF_DIR, of "
    f"multilang cluster up, or localhost:{DEFAULT_PORT}.",
)
WAIT = click.option(
    "--wait",
    type=click.IntRange(min=0),
    metavar="SECS",
    help="Seconds to wait after its deactivation; its message timeout unless given.",
)


@contextmanager
def faults() -> Iterator[None]:
    """Show errors of a cluster as errors of the command."""
    try:
        yield
    except ShippingError as error:
        raise fault(str(error), exits.UNAVAILABLE if error.kind == UNREACHABLE else exits.USAGE) from error


@contextmanager
def connected(where: str | None) -> Iterator[Nimbus]:
    """Connect to the Nimbus that the command line names, or the configuration; errors are shown."""
    with faults(), connect_to(where)() as nimbus:
        yield nimbus


def connect_to(where: str | None) -> Callable[[], Nimbus]:
    """Return a function that connects to the Nimbus that the command line names, or the configuration."""
    from multilang.shipping.nimbus import Nimbus

    with faults():
        seeds, conf = _cluster(where)
    return lambda: Nimbus(seeds, conf=conf)


def storm_yaml() -> dict[str, Any]:
    """Return the entries of the user's storm.yaml; none if there is no such file. Errors are shown."""
    path = conf_file()
    with faults():
        return {} if path is None else read_conf(path)


def _cluster(where: str | None) -> tuple[list[Address], dict[str, Any]]:
    """Return the addresses to try and the conf for the login, wherever the addresses come from."""
    own = _own_cluster()
    if where is not None and own is not None and parse_address(where) == own.address:
        return [own.address], own.conf
    path = conf_file()
    conf = storm_yaml()
    if where is not None:
        return [parse_address(where, nimbus_port(conf, str(path)))], conf
    if path is not None:
        return addresses(conf, str(path)), conf
    if own is not None:
        return [own.address], own.conf
    return [Address("localhost")], conf


def _own_cluster() -> Cluster | None:
    """Return the cluster that ``multilang cluster up`` started, if it runs."""
    from multilang.shipping.cluster import Cluster

    cluster = Cluster()
    return cluster if any(cluster.status().values()) else None

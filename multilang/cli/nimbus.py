"""The common part of all commands that use a cluster: the choice of the cluster, and the display of its errors."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from multilang.cli import exits
from multilang.shipping.errors import ClusterError, NimbusError, ShippingError, UnreachableError
from multilang.shipping.storm_yaml import DEFAULT_PORT, Address, addresses, conf_file, parse_address, read_conf

if TYPE_CHECKING:
    from collections.abc import Iterator

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


class NimbusFault(click.ClickException):
    """A cluster refused something; shown without a traceback."""

    exit_code = exits.USAGE


class Unreachable(NimbusFault):
    """A cluster could not be reached."""

    exit_code = exits.UNAVAILABLE


@contextmanager
def faults() -> Iterator[None]:
    """Show errors of a cluster as errors of the command."""
    try:
        yield
    except UnreachableError as error:
        raise Unreachable(str(error)) from error
    except (NimbusError, ShippingError, ClusterError) as error:
        raise NimbusFault(str(error)) from error


@contextmanager
def connected(where: str | None) -> Iterator[Nimbus]:
    """Connect to the Nimbus that the command line names, or the configuration; errors are shown."""
    from multilang.shipping.nimbus import Nimbus

    with faults(), Nimbus(_seeds(where)) as nimbus:
        yield nimbus


def _seeds(where: str | None) -> list[Address]:
    if where is not None:
        return [parse_address(where)]
    path = conf_file()
    if path is not None:
        return addresses(read_conf(path), str(path))
    return [_own_cluster() or Address("localhost")]


def _own_cluster() -> Address | None:
    """Return the Nimbus that ``multilang cluster up`` started, if that cluster runs."""
    from multilang.shipping.cluster import Cluster

    cluster = Cluster()
    return cluster.address if any(cluster.status().values()) else None

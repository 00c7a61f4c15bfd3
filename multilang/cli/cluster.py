"""``multilang cluster``: a real Storm on this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from multilang.cli import exits
from multilang.cli.arguments import conf_option
from multilang.cli.nimbus import faults
from multilang.cli.output import echo
from multilang.shipping.cluster import STORM_VERSION, Cluster

_HOME = click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    help="The cluster's folder; MULTILANG_CLUSTER_HOME, or one in the user's cache, unless given.",
)


_EVERYWHERE = "on every interface: whoever reaches this machine runs code as you"
_LOOPBACK = "on loopback alone, where any account of this machine can run code as you; workers' ports ask for a secret"


@click.group(help=f"Run a real Storm {STORM_VERSION} on this machine: ZooKeeper, Nimbus and supervisors on loopback.")
def cluster() -> None:
    """Run a real Storm on this machine; the decorator has the help text."""


@cluster.command()
@_HOME
@click.option(
    "--supervisors", type=click.IntRange(1, 8), default=1, show_default=True, help="The number of supervisors."
)
@click.option(
    "--slots", type=click.IntRange(1, 32), default=4, show_default=True, help="The most workers of each supervisor."
)
@conf_option("An entry for storm.yaml; VALUE is JSON or text.")
@click.option("--drpc/--no-drpc", default=None, help="Run Storm's DRPC server, too; without either, if there is a JDK.")
@click.option(
    "--expose", is_flag=True, help="Listen on every interface: whoever reaches this machine then runs code as you."
)
def up(home: Path | None, supervisors: int, slots: int, conf: dict[str, Any], drpc: bool | None, expose: bool) -> int:
    """Start the daemons that are not running, and wait until they are ready.

    Storm is downloaded once through Maven (140 MB); it needs a Java runtime, 17 or newer. A cluster that is down, or
    whose start was interrupted, starts without its earlier topologies. It stays up when this command has ended.
    """
    chosen = Cluster(home, supervisors=supervisors, slots=slots, conf=conf, drpc=drpc, expose=expose)
    with faults():
        chosen.up(lambda what: echo(f"{what} ...", err=True))
        address = chosen.address
        otherwise = chosen.not_as_asked()
    running = len([name for name in chosen.status() if name.startswith("supervisor")])
    if otherwise:
        echo(
            f"it runs already, and keeps what it was started with ({', '.join(otherwise)}); "
            "multilang cluster down ends it first",
            err=True,
        )
    echo(f"nimbus      {address}")
    echo(f"listens     {_EVERYWHERE if chosen.exposed else _LOOPBACK}")
    echo(f"supervisors {running}")
    if chosen.drpc:
        echo("drpc        {}, for topologies {}".format(*chosen.drpc))
    echo(f"logs        {chosen.logs}")
    echo(f"for Storm's own client: STORM_CONF_DIR={chosen.conf_folder}")
    return exits.OK


@cluster.command()
@_HOME
def down(home: Path | None) -> int:
    """End the whole cluster: daemons, workers and components."""
    with faults():
        ended = Cluster(home).down()
    echo(f"{ended} processes ended" if ended else "nothing was running")
    return exits.OK


@cluster.command()
@_HOME
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
def status(home: Path | None, as_json: bool) -> int:
    """Show the daemons. Exit status 0: all of them run; 1: some do not, or none."""
    chosen = Cluster(home)
    daemons = chosen.status()
    whole = bool(daemons) and all(daemons.values())
    address = str(chosen.address) if daemons else None
    drpc = [str(each) for each in chosen.drpc or ()] if daemons else []
    workers = len(chosen.processes()) - sum(pid is not None for pid in daemons.values())
    if as_json:
        document = {"home": str(chosen.home), "nimbus": address, "drpc": drpc, "daemons": daemons, "others": workers}
        echo(json.dumps(document))
    elif not daemons:
        echo(f"down ({chosen.home})")
    else:
        for name, pid in daemons.items():
            echo(f"{name:13}{'down' if pid is None else f'up, process {pid}'}")
        echo(f"Nimbus's address is {address}; workers and components: {workers} processes")
        if drpc:
            echo(f"DRPC: clients ask {drpc[0]}, topologies {drpc[1]}")
    return exits.OK if whole else 1

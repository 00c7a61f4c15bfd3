"""``multilang drpc``: a DRPC server, and calls to one."""

from __future__ import annotations

import sys
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from multilang import settings
from multilang.cli import exits
from multilang.cli.arguments import conf_option
from multilang.cli.loading import load
from multilang.cli.nimbus import storm_yaml
from multilang.cli.output import echo, echo_data
from multilang.component.errors import ConfigError
from multilang.drpc import addresses
from multilang.drpc.client import DRPCClient
from multilang.drpc.connection import CLIENT_PORT, HTTP_PORT, INVOCATIONS_PORT
from multilang.drpc.errors import DRPCConnectionError, DRPCExecutionException, DRPCTimeoutError
from multilang.drpc.server import DRPCServer
from multilang.local import LocalCluster, LocalClusterError, TaskStartError
from multilang.topology import TopologyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from multilang.local import LocalTopology

_PORT = click.IntRange(0, 65535)


@click.group()
def drpc() -> None:
    """Serve calls that topologies answer, and make such calls."""


@drpc.command()
@click.argument("topologies", nargs=-1, metavar="[TOPOLOGY]...")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on, or unix:FOLDER, for sockets that you alone can reach.",
)
@click.option("--port", type=_PORT, default=CLIENT_PORT, show_default=True, help="The port for clients; 0: a free one.")
@click.option(
    "--invocations-port",
    type=_PORT,
    default=INVOCATIONS_PORT,
    show_default=True,
    help="The port for topologies; 0: a free one.",
)
@click.option("--http-port", type=_PORT, help=f"Serve HTTP, too, on this port, such as {HTTP_PORT}; 0: a free one.")
@click.option("--no-http", is_flag=True, hidden=True)  # of earlier versions; it is the default now
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    help="Seconds that a request may take.",
)
@conf_option("A topology's conf entry.")
def serve(
    topologies: tuple[str, ...],
    host: str,
    port: int,
    invocations_port: int,
    http_port: int | None,
    no_http: bool,
    timeout: float,
    conf: dict[str, Any],
) -> int:
    """Run a DRPC server until Ctrl-C, with TOPOLOGIES that answer its calls on the embedded cluster.

    Storm's clients, and topologies on a Storm cluster whose conf has this host in drpc.servers, can use it too. It has
    no password: every account of this machine may call, and answer, unless --host is unix:FOLDER. TOPOLOGY is a file (examples/reach.py), a file and a name in it, or module:name.

    \b
    Exit status: 0  ended by Ctrl-C or SIGTERM
                 3  a topology's component did not start
                 4  a topology could not continue
    """  # noqa: D301 - click wants the very sign that backslash-b stands for
    loaded = [load(each) for each in topologies]
    server = DRPCServer(host, port, invocations_port, None if no_http else http_port, timeout_secs=timeout)
    with ExitStack() as stack:
        try:
            stack.enter_context(server)
        except DRPCConnectionError as error:
            raise click.UsageError(str(error)) from error
        ended = threading.Event()
        _until_signal(stack, ended.set)
        runs: list[LocalTopology] = []
        if loaded:
            cluster = stack.enter_context(LocalCluster())
            for topology in loaded:
                try:
                    settings.check(conf)
                    runs.append(cluster.submit(topology, conf={**server.conf, **conf}))
                except (ConfigError, LocalClusterError, TopologyError) as error:
                    raise click.UsageError(str(error)) from error
                echo(f"topology {topology.name!r} runs here")
        shown = "" if server.http_port is None else f", HTTP POST http://{host}:{server.http_port}/drpc/FUNCTION"
        places = [addresses.shown(host, port) for port in (server.port, server.invocations_port)]
        echo("clients {}, topologies {}".format(*places) + shown)
        sys.stdout.flush()
        try:
            while not ended.wait(0.5):
                for run in runs:
                    run.run_for(0)
        except LocalClusterError as error:
            echo(f"Error: {error}", err=True)
            return exits.NEVER_STARTED if isinstance(error, TaskStartError) else exits.BROKE_OFF
    return exits.OK


def _until_signal(stack: ExitStack, stop: Callable[[], object]) -> None:
    import signal

    for number in (signal.SIGINT, signal.SIGTERM):
        before = signal.signal(number, lambda *_: stop())
        stack.callback(signal.signal, number, before)


@drpc.command()
@click.argument("function")
@click.argument("arguments", default="")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The host of the DRPC server, this project's or Storm's, or unix:FOLDER.",
)
@click.option("--port", type=_PORT, default=CLIENT_PORT, show_default=True, help="Its port for clients.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    help="Seconds to wait; without it, as long as the server waits.",
)
@conf_option("An entry in the place of storm.yaml's, such as drpc.thrift.transport=PLUGIN.")
def call(function: str, arguments: str, host: str, port: int, timeout: float | None, conf: dict[str, Any]) -> int:
    """Call FUNCTION and print the result.

    The login is the one of ~/.storm/storm.yaml, or of the storm.yaml in STORM_CONF_DIR; without such a file there is none.

    \b
    Exit status: 0  there is a result
                 1  the request failed
                69  no DRPC server can be reached, or it broke off
               124  there was no result in time: within --timeout, or the server's own
    """  # noqa: D301 - click wants the very sign that backslash-b stands for
    try:
        with DRPCClient(host, port, timeout, {**storm_yaml(), **conf}) as client:
            echo_data(client.execute(function, arguments))
    except ValueError as problem:  # a setting is wrong, or the command line has bytes that are no text
        raise click.UsageError(str(problem)) from problem
    except DRPCExecutionException as problem:
        echo(f"Error: {problem.kind or 'failed'}: {problem.message}", err=True)
        return exits.TIMED_OUT if problem.kind == "SERVER_TIMEOUT" else exits.FAILED_TUPLES
    except DRPCTimeoutError as problem:
        echo(f"Error: {problem}", err=True)
        return exits.TIMED_OUT
    except DRPCConnectionError as problem:
        echo(f"Error: {problem}", err=True)
        return exits.UNAVAILABLE
    return exits.OK

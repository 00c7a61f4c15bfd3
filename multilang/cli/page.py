"""``multilang page``: the pages of a cluster, in a browser."""

from __future__ import annotations

import click

from multilang.cli import exits
from multilang.cli.nimbus import NIMBUS, connect_to, faults
from multilang.cli.output import echo
from multilang.component.errors import ConfigError


@click.command()
@NIMBUS
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0: any free port.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address to listen at; all that connect need the token."
)
def page(where: str | None, port: int, host: str) -> int:
    """Show a cluster's topologies in a browser: their graph, figures, curves and errors. Ctrl-C ends it.

    Whoever has the address with its token may also deactivate, rebalance and kill topologies.
    """
    from multilang.page.cluster import serve_cluster

    connect = connect_to(where)
    with faults():
        connect().close()  # an address or a login that is wrong is reported here, not on the page
    try:
        serve_cluster(connect, host, port, lambda url: echo(f"page: {url}"))
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    return exits.OK

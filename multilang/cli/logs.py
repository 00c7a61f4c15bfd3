"""``multilang logs``: the logs of a topology's workers, with those of the components."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from multilang.cli import exits
from multilang.cli.nimbus import NIMBUS, connected, faults
from multilang.cli.said import echo
from multilang.masked import harmless, masked_text
from multilang.shipping.worker_logs import (
    LOGVIEWER_PORT,
    WorkerPlace,
    local_folder,
    local_workers,
    newest_folder,
    nimbus_conf,
    tail_of_file,
    tail_of_logviewer,
    workers,
)

if TYPE_CHECKING:
    from multilang.shipping.nimbus import Nimbus


@click.command()
@click.argument("name")
@NIMBUS
@click.option("--component", metavar="ID", help="Only workers that run this component.")
@click.option(
    "-n", "--lines", type=click.IntRange(min=1), default=50, show_default=True, help="The number of lines of each log."
)
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Storm's folder of logs; then no cluster is asked, and topologies that have ended are found too.",
)
def logs(name: str, where: str | None, component: str | None, lines: int, folder: Path | None) -> int:
    """Show the end of the logs of a topology's workers.

    They are read on this machine if it has Storm's folder of logs, as with multilang cluster; otherwise from the
    logviewer (storm logviewer) on each worker's host.
    """
    if folder is not None:
        if component is not None:
            raise click.UsageError(
                "--component and --folder can't be given together: only the cluster knows which workers run a component"
            )
        with faults():
            for worker, path in local_workers(newest_folder(folder, name)):
                _show(worker, tail_of_file(path, lines))
        return exits.OK
    with connected(where) as nimbus:
        return _from_cluster(nimbus, name, component, lines)


def _from_cluster(nimbus: Nimbus, name: str, component: str | None, lines: int) -> int:
    info = nimbus.topology(name)
    chosen = workers(info, component)
    conf = nimbus_conf(nimbus)
    # If the workers are on several hosts, a folder on this machine has the logs of only one of them.
    here = local_folder(conf, info.id) if len({each.host for each in chosen}) <= 1 else None
    if here is not None:
        shown = [
            (worker, path) for worker, path in local_workers(here, chosen) if worker in chosen or component is None
        ]
        for worker, path in shown:
            _show(worker, tail_of_file(path, lines))
    else:
        port = conf.get("logviewer.port") or LOGVIEWER_PORT
        for worker in chosen:
            _show(worker, tail_of_logviewer(worker, info.id, port, lines))
    if not chosen and here is None:
        echo(f"{name} has no worker yet", err=True)
    return exits.OK


def _show(worker: WorkerPlace, lines: list[str]) -> None:
    at = f"{worker.host}:{worker.port}" if worker.host else f"worker {worker.port}"
    what = f" ({', '.join(worker.components)})" if worker.components else ""
    echo(harmless(f"==> {at}{what} <=="))
    for line in lines:
        echo(harmless(masked_text(line)))

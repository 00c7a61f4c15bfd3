"""``multilang logs``: what the components of a topology log, from all of its workers."""

from __future__ import annotations

import re
import sys
import time
from collections import deque
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multilang.cli import exits
from multilang.cli.arguments import PROJECT_ENVIRONMENT
from multilang.cli.log_view import Chosen, LogView
from multilang.cli.nimbus import NIMBUS, connected, faults
from multilang.cli.output import echo
from multilang.cli.settings import ProjectCommand
from multilang.helpers.masked import harmless, masked_text
from multilang.shipping.errors import UNREACHABLE, ShippingError
from multilang.shipping.log_records import LEVELS, RecordReader
from multilang.shipping.nimbus import nimbus_conf
from multilang.shipping.worker_logs import (
    FollowedFile,
    FollowedLogviewer,
    WorkerPlace,
    followed,
    local_workers,
    logviewer_port,
    newest_folder,
    shared_folder,
    tail_of_file,
    tail_of_logviewer,
    workers,
)

if TYPE_CHECKING:
    from multilang.shipping.log_records import Record
    from multilang.shipping.nimbus import Nimbus

_POLL = 0.5  # seconds between two looks at files on this machine
_POLL_LOGVIEWER = 3.0  # seconds; each look downloads the log
_ASK = 5.0  # seconds between two questions to Nimbus, which workers there are


def _pattern(_context: click.Context, _parameter: click.Parameter, text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise click.BadParameter(f"{text!r} is no regular expression: {error}") from error


@click.command(cls=ProjectCommand)
@click.argument("name")
@NIMBUS
@PROJECT_ENVIRONMENT
@click.option("-f", "--follow", is_flag=True, help="Show new lines, until Ctrl-C or the topology's end.")
@click.option("--component", metavar="ID", help="Only the lines of this component.")
@click.option(
    "--level",
    type=click.Choice([*LEVELS[:3], "warning", "error"]),
    default="trace",
    help="Only lines of this level or above.",
)
@click.option(
    "--grep", metavar="REGEX", callback=_pattern, help="Only lines, with what belongs to them, in which this is found."
)
@click.option(
    "-n", "--lines", type=click.IntRange(min=0), default=50, show_default=True, help="The number of lines from before."
)
@click.option("--storm", is_flag=True, help="Storm's own lines, too, which otherwise are shown from warnings on.")
@click.option(
    "--raw", is_flag=True, help="The end of each worker's log as it is there; with --component: of its workers."
)
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Storm's folder of logs; then no cluster is asked, and topologies that have ended are found too.",
)
def logs(
    name: str,
    where: str | None,
    follow: bool,
    component: str | None,
    level: str,
    grep: re.Pattern[str] | None,
    lines: int,
    storm: bool,
    raw: bool,
    folder: Path | None,
) -> int:
    """Show what the components of a topology log, from all of its workers, in the order of time.

    The logs are read on this machine if it has Storm's folder of logs, as with multilang cluster; otherwise from the
    logviewer (storm logviewer) on each worker's host.
    """
    if raw and (follow or grep is not None or level != "trace"):
        raise click.UsageError("--raw shows the files as they are; --follow, --level and --grep are without it")
    if raw and folder is not None and component is not None:
        raise click.UsageError(
            "--component and --folder can't be given together with --raw: only the cluster knows which workers run a component"
        )
    if raw:
        return _raw(name, where, component, lines, folder)
    chosen = Chosen(component, {"warning": "warn"}.get(level, level), grep, storm)
    if folder is not None:
        with faults():
            return _shown(_Folder(newest_folder(folder, name)), chosen, lines, follow)
    with connected(where) as nimbus:
        if component is not None:
            workers(nimbus.topology(name), component)  # refuses a component that there is not
        return _shown(_Cluster(nimbus, name), chosen, lines, follow)


class _Folder:
    """The logs of a topology in a folder of this machine."""

    poll = _POLL

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def sources(self) -> dict[str, Any] | None:
        """Return each worker's name with its log; None: the topology has ended."""
        return {f"worker {worker.port}": FollowedFile(path) for worker, path in local_workers(self._folder)}


class _Cluster:
    """The logs of a topology on a cluster."""

    def __init__(self, nimbus: Nimbus, name: str) -> None:
        self._nimbus = nimbus
        self._name = name
        self._id: str = nimbus.topology(name).id
        self._conf = nimbus_conf(nimbus)
        self.poll = _POLL

    def sources(self) -> dict[str, Any] | None:
        try:
            info = self._nimbus.topology(self._name)
        except ShippingError as error:
            if error.kind in (None, UNREACHABLE):
                raise
            return None
        if info.id != self._id:
            return None  # another one of the same name
        found = followed(info, self._conf)
        if any(isinstance(each, FollowedLogviewer) for each in found.values()):
            self.poll = _POLL_LOGVIEWER
        return found


def _shown(logs: _Folder | _Cluster, chosen: Chosen, lines: int, follow: bool) -> int:
    view = LogView(sys.stdout, chosen)
    sources = logs.sources() or {}
    readers = {name: RecordReader() for name in sources}
    before: deque[Any] = deque(maxlen=lines)
    found: list[tuple[str, str, Record]] = []
    for name, source in sources.items():
        own: deque[Any] = deque(maxlen=lines)
        read = (record for lines in source.every() for record in readers[name].add(lines))
        for record in chain(read, readers[name].rest()):
            if chosen.takes(record):
                own.append((record.time, name, record))
            else:
                view.leaves_out(record)
        found += own
    before.extend(sorted(found, key=lambda each: each[0]))
    view.show([(name, record) for _, name, record in before])
    if not sources:
        echo("the topology has no worker with a log yet", err=True)
    if not follow:
        view.note_left_out()
        return exits.OK
    try:
        _follow(logs, sources, readers, view)
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    echo("the topology has ended", err=True)
    return exits.OK


def _follow(logs: _Folder | _Cluster, sources: dict[str, Any], readers: dict[str, RecordReader], view: LogView) -> None:
    asked = time.monotonic()
    while True:
        time.sleep(logs.poll)
        has_ended = False
        if time.monotonic() - asked >= _ASK:
            asked = time.monotonic()
            try:
                now = logs.sources()
            except ShippingError as error:
                echo(f"note: {error}", err=True)
                now = sources
            has_ended = now is None
            for name, source in (now or {}).items():
                sources.setdefault(name, source)
                readers.setdefault(name, RecordReader())
        came = []
        for name, source in sources.items():
            lines = source.lines()
            # A record that nothing has followed for a whole look is whole.
            came += [(record.time, name, record) for record in _all(readers[name], lines, whole=not lines or has_ended)]
        came.sort(key=lambda each: each[0])
        view.show([(name, record) for _, name, record in came if view.chosen.takes(record)])
        if has_ended:
            return


def _all(reader: RecordReader, lines: list[str], whole: bool) -> list[Any]:
    found = list(reader.add(lines))
    return [*found, *reader.rest()] if whole else found


def _raw(name: str, where: str | None, component: str | None, lines: int, folder: Path | None) -> int:
    if folder is not None:
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
    here = shared_folder(conf, info.id, chosen)
    if here is not None:
        shown = [
            (worker, path) for worker, path in local_workers(here, chosen) if worker in chosen or component is None
        ]
        for worker, path in shown:
            _show(worker, tail_of_file(path, lines))
    else:
        port = logviewer_port(conf)
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

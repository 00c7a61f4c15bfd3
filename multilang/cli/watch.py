"""``multilang run --watch``: restarts the topology whenever a file of its code is saved."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from multilang.cli import exits
from multilang.cli.output import echo
from multilang.cli.settings import project_for_place
from multilang.cli.view import console
from multilang.cli.watched import Launcher
from multilang.loading.topologies import YAML, split_target
from multilang.project import FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType

    from multilang.cli.watched import WatchedRun

_LOOK_MS = 100  # milliseconds between two looks at the run while no file is saved
_QUIET_MS = 20  # milliseconds without a further change after which what was saved is taken: editors write several files
_LONGEST_MS = 400


def run_and_watch(topology: str, run: Callable[[WatchedRun], int], *, as_json: bool) -> int:
    """Run the topology of the command line, and again whenever a file that it is made of is saved.

    Args:
        topology: The topology, as ``multilang run`` takes it.
        run: Runs the command line again, in a process of its own, and returns its exit status.
        as_json: Whether one JSON document was asked for, which is refused.

    Returns:
        The exit status: that of a process that Ctrl-C or SIGTERM ended.
    """
    if as_json:
        raise click.UsageError("--watch has no end, so that --json never comes; leave one of them out")
    try:
        from watchfiles import DefaultFilter, watch
    except ModuleNotFoundError as error:
        echo(
            f"multilang: --watch needs the package {error.name}; install the extra: pip install 'storm-multilang[watch]'",
            err=True,
        )
        return exits.UNAVAILABLE
    folder = _folder(topology)
    launcher = Launcher(run)  # before watchfiles starts its threads
    signal.signal(signal.SIGTERM, _terminated)
    reporter = _Reporter(folder)
    is_reported = False
    try:
        launcher.start()
        is_code = DefaultFilter()
        for changes in watch(
            folder,
            watch_filter=is_code,
            debounce=_LONGEST_MS,
            step=_QUIET_MS,
            rust_timeout=_LOOK_MS,
            yield_on_timeout=True,
        ):
            launcher.look()
            saved = sorted(path for _, path in changes if _concerns(path, launcher.files))
            if saved:
                reporter.saved(saved)
                launcher.end_run()
                launcher.start()
                is_reported = False
            elif launcher.status is not None and not is_reported:
                reporter.waits(launcher.status)
                is_reported = True
    except KeyboardInterrupt:
        launcher.end_run(signal.SIGINT)
        return exits.INTERRUPTED
    except _Terminated:
        launcher.end_run()
        return exits.TERMINATED
    finally:
        launcher.close()
    return exits.OK


class _Terminated(BaseException):
    pass


def _terminated(_number: int, _frame: FrameType | None) -> None:
    raise _Terminated


def _folder(topology: str) -> Path:
    """Return the folder whose files are watched."""
    project = project_for_place(topology)
    if project is not None:
        return project.root
    if os.path.isdir(topology):
        return Path(topology).resolve()
    if topology.endswith(YAML):
        return Path(topology).resolve().parent
    place, _ = split_target(topology)
    return Path(place).parent if place.endswith(".py") else Path.cwd()


def _concerns(path: str, files: Iterable[str] | None) -> bool:
    """Return whether a file that was saved belongs to the run.

    Besides the files that the topology has loaded, these are the other modules of their packages, which components may
    import later. While it can't be loaded, any module may be the one that is mended.
    """
    folder, name = os.path.split(path)
    if name == FILE:
        return True
    if files is None:
        return name.endswith((".py", *YAML))
    if path in files:
        return True
    packages = {os.path.dirname(each) for each in files if os.path.basename(each) == "__init__.py"}
    return name.endswith(".py") and folder in packages


class _Reporter:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._screen = console(sys.stderr)

    def saved(self, paths: list[str]) -> None:
        names = [os.path.relpath(each, self._folder) for each in paths]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        self._line(f"{', '.join(names[:3])}{more} saved: restarting")

    def waits(self, status: int) -> None:
        how = "it ended" if status == exits.OK else f"it ended with status {status}"
        self._line(f"{how}; it runs again when a file is saved. Ctrl-C ends it")

    def _line(self, text: str) -> None:
        at = time.strftime("%H:%M:%S")
        self._screen.print(f"[{at}] {text}", style="bold cyan" if self._screen.is_terminal else "", markup=False)

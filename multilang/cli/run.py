"""``multilang run``: submits the topology to an embedded cluster, shows its progress, and reports its end."""

from __future__ import annotations

import logging
import signal
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from multilang import settings
from multilang.cli import exits
from multilang.cli.arguments import GIVEN_CONF, PROJECT_CONF
from multilang.cli.live import shown_on_page
from multilang.cli.loading import load, load_replayed, load_stand_ins
from multilang.cli.project import note_other_versions
from multilang.cli.ranking import Ranking
from multilang.cli.report import Outcome, write_json, write_tables
from multilang.cli.view import RunView, console
from multilang.component.errors import ConfigError
from multilang.component.repeats import Repeats
from multilang.engine.status import RunStatus
from multilang.helpers.masked import masked_text
from multilang.local import Faults, LocalCluster, LocalClusterError, NotDrainedError, TaskStartError
from multilang.local.topology import listed
from multilang.settings import EXCHANGE
from multilang.topology import TopologyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import FrameType

    from multilang.cli.arguments import Top
    from multilang.cli.watched import WatchedRun
    from multilang.local import LocalTopology
    from multilang.topology import Topology

STEP = 0.2  # seconds between two checks of the run, after which a signal is handled and the table is drawn
PAUSE_SECS = 10.0  # of virtual time between two faults, so that the topology gets on between them

_STATUS = {"drained": exits.OK, "time": exits.OK, "interrupted": exits.INTERRUPTED, "terminated": exits.TERMINATED}


def run_topology(
    files: Sequence[Path],
    *,
    topology: str,
    mode: str,
    until_drained: bool,
    seconds: float | None,
    conf: dict[str, Any],
    exchange: str | None,
    seed: int | None,
    faults: bool,
    top: Top | None,
    rows: int,
    prometheus: int | None,
    record: Path | None,
    replay: Path | None,
    stand_ins: dict[str, str],
    pace: str,
    page: int | None,
    as_json: bool,
    quiet: bool,
    verbose: int,
    watched: WatchedRun | None = None,
) -> int:
    """Run the command, and return its exit status (see ``exits``)."""
    loaded = load(topology)
    note_other_versions(loaded)
    if watched is not None:
        watched.send_files(loaded)
    loaded = load_stand_ins(loaded, stand_ins)
    if replay is None and pace == "recorded":
        raise click.UsageError("--pace recorded needs --replay FILE: the times are those of a recording")
    if replay is not None:
        loaded = load_replayed(loaded, replay, pace)
    _check_mode(loaded, mode, faults)
    ranking = None if top is None else Ranking(top, loaded)
    if files:
        conf = {**conf, settings.INPUT_FILES: [str(file) for file in files]}
    if exchange is not None:
        conf = {**conf, EXCHANGE: exchange}
    if verbose > 1:
        conf = {settings.LOG_LEVEL: "debug" if verbose == 2 else "trace", **conf}
    if record is not None:
        conf = {**conf, settings.RECORD: _recorded(loaded, record, mode, watched)}
    if mode == "simulated":
        loaded, conf = _as_of_topology(loaded, conf)
    with Stop() as stop, RunView(loaded.name, mode, quiet) as progress:
        shown = _show_log(
            progress,
            logging.CRITICAL + 1 if quiet else (logging.WARNING, logging.INFO, logging.DEBUG, 5)[min(verbose, 3)],
            has_page=page is not None,
        )
        cluster = LocalCluster(mode=mode, seed=seed, faults=Faults(pause_secs=PAUSE_SECS) if faults else None)  # type: ignore[arg-type]
        run = _Run(loaded, cluster, conf, ranking, progress, stop)
        with (
            _served(run, prometheus, progress),
            shown_on_page(page, lambda: run.last, lambda text: progress.message(text, "bold")) as shown_page,
        ):
            if shown_page is not None:
                run.by_task.append(lambda: shown_page.is_watched)
            outcome = run.to_the_end(seconds, drained=until_drained or seconds is None)
        shown.repeats.report_rest()
        outcome.rows = ranking.rows(rows) if ranking is not None else []
    if watched is not None and outcome.end == "terminated":
        return outcome.status  # a file was saved: the next run follows
    if as_json:
        write_json(outcome)
    else:
        write_tables(outcome, console(sys.stdout))
    return outcome.status


def _as_of_topology(topology: Topology, conf: dict[str, Any]) -> tuple[Topology, dict[str, Any]]:
    """Return a topology with the conf of the project as its own, and the rest of ``conf``, which this run was given."""
    meta = click.get_current_context().meta
    project, given = meta.get(PROJECT_CONF, {}), meta.get(GIVEN_CONF, {})
    try:
        topology = topology.with_conf(project)
    except (ConfigError, TopologyError) as error:
        raise click.UsageError(str(error)) from error
    return topology, {key: value for key, value in conf.items() if key not in project or key in given}


def _recorded(topology: Topology, path: Path, mode: str, watched: WatchedRun | None) -> dict[str, Any]:
    """Make the file of a recording, and return the setting by which spouts write to it."""
    from multilang.component.errors import ConfigError
    from multilang.recording import new_recording

    if watched is not None:
        raise click.UsageError("--record is one run, and --watch starts many; leave one of them out")
    try:
        new_recording(path, topology)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    return {"file": str(path.resolve()), "start": 0.0 if mode == "simulated" else time.monotonic()}


class Stop:
    """Makes SIGINT and SIGTERM ask for the end of the run; a second signal breaks it off."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._former: dict[int, Any] = {}

    def __enter__(self) -> Stop:  # noqa: PYI034 - Self is not in Python 3.10
        for number in (signal.SIGINT, signal.SIGTERM):
            self._former[number] = signal.signal(number, self._came)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def _came(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number

    @property
    def end(self) -> str:
        """The word for the run's end after this signal."""
        return "terminated" if self.signal == signal.SIGTERM else "interrupted"


class _Run:
    """One topology, from its submission to its end."""

    def __init__(
        self,
        topology: Topology,
        cluster: LocalCluster,
        conf: dict[str, Any],
        ranking: Ranking | None,
        progress: RunView,
        stop: Stop,
    ) -> None:
        self._topology = topology
        self._cluster = cluster
        self._conf = conf
        self._ranking = ranking
        self._progress = progress
        self._stop = stop
        self.last: RunStatus | None = None  # the last status
        self.by_task: list[Callable[[], bool]] = []  # whether each task's figures are asked for while it runs

    def to_the_end(self, seconds: float | None, drained: bool) -> Outcome:
        """Submit the topology, wait, and return the outcome. Raises click's usage errors for a wrong conf."""
        start = time.monotonic()
        end, problem, status, run = "broke-off", None, exits.BROKE_OFF, None
        ranking = self._ranking
        top = None if ranking is None else ranking.top
        capture = {} if ranking is None else {(ranking.top.component, ranking.top.stream): ranking.add}
        with self._cluster as cluster:
            try:
                settings.check(self._conf)  # otherwise each task's process would find the fault
                run = cluster.submit(self._topology, conf=self._conf, capture=capture)
                end = self._wait(run, seconds, drained)
                status = _STATUS[end]
                if end == "time" and not any(task.alive or task.restarts for task in run.tasks):
                    end, status = "not-started", exits.NEVER_STARTED
                    problem = f"no component had started after {seconds:g} s; give them more time with --for"
            except (ConfigError, TopologyError) as error:
                raise click.UsageError(str(error)) from error
            except TaskStartError as error:
                end, problem, status = "not-started", _with_last_report(error, run), exits.NEVER_STARTED
            except LocalClusterError as error:
                problem = str(error)
            if run is None:
                took = time.monotonic() - start
                last = RunStatus(topology=self._topology.name, engine=cluster.mode, state="failed", seconds=took)
            else:
                self.last = run.status()
                last = self.last.averaged()
            cut = end in ("interrupted", "terminated") or (drained and end == "time")
            waiting_for = listed(last.waiting_for or ()) if cut else []
            seed = cluster.seed if cluster.mode == "simulated" else None
        if run is not None:
            last = _with_metrics_of(run.status(), last)  # tasks in processes report them at their end
        outcome = Outcome(
            last,
            cluster.mode,
            seed,
            cluster.faults is not None,
            end,
            status,
            top,
            problem=problem,
            waiting_for=waiting_for,
        )
        too_late = drained and end == "time"
        if too_late:
            outcome.problem = f"not everything was processed in {seconds:g} s{outcome.waited()}"
        if status == exits.OK and (outcome.lost or too_late):
            outcome.status = exits.FAILED_TUPLES
        return outcome

    def _wait(self, run: LocalTopology, seconds: float | None, drained: bool) -> str:
        """Wait for the end of the run, updating the display, and return how it ended."""
        now: Callable[[], float] = run.clock.now
        deadline = float("inf") if seconds is None else run.started + seconds
        while True:
            step = min(STEP, max(deadline - now(), 0.0))
            try:
                if drained:
                    run.wait(timeout=step)
                    self._show(run)
                    return "drained"
                run.run_for(step)
            except NotDrainedError as error:
                self._show(run, _first(error.waiting_for))
            else:
                self._show(run)
            if self._stop.signal is not None:
                return self._stop.end
            if now() >= deadline:
                return "time"

    def _show(self, run: LocalTopology, note: str = "") -> None:
        self.last = run.status(by_task=any(is_asked() for is_asked in self.by_task))
        self._progress.update(self.last, note)


@contextmanager
def _served(run: _Run, port: int | None, progress: RunView) -> Iterator[None]:
    """Serve the last status of a run to Prometheus, if ``port`` is given."""
    if port is None:
        yield
        return
    from multilang.engine.exposition import serve_status

    run.by_task.append(lambda: True)
    try:
        endpoint = serve_status(lambda: run.last, port, setting="--prometheus")
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    progress.message(f"Prometheus metrics on {endpoint.url}", "dim")
    try:
        yield
    finally:
        endpoint.close()


def _with_metrics_of(ended: RunStatus, status: RunStatus) -> RunStatus:
    """Return a status with the components' own metrics of a later one."""
    metrics = {each.id: each.metrics for component in ended.components for each in component.by_task}
    return replace(
        status,
        components=tuple(
            replace(component, by_task=tuple(replace(each, metrics=metrics[each.id]) for each in component.by_task))
            for component in status.components
        ),
    )


def _with_last_report(error: TaskStartError, run: LocalTopology | None) -> str:
    """Return the error with the last report of a component before it, which is most likely the cause."""
    reported = [each.message.rstrip() for each in run.errors if not each.fatal] if run is not None else []
    return f"{error}\n{reported[-1]}" if reported and reported[-1] not in str(error) else str(error)


def _check_mode(topology: Topology, mode: str, faults: bool) -> None:
    if faults and mode != "simulated":
        raise click.UsageError("--faults needs --mode simulated: only there a seed decides what goes wrong")
    for spec in topology.components.values():
        if spec.command is not None and mode != "process":
            raise click.UsageError(
                f"{spec.kind} {spec.id!r} is the program {spec.command[0]!r}, which needs a process of its own; "
                "use --mode process"
            )


def _first(waiting_for: Sequence[str]) -> str:
    return f"waiting for {waiting_for[0]}" if waiting_for else ""


class _ToRunView(logging.Handler):
    """Shows log records above the table, or line by line on standard error.

    Unless ``in_full``, a traceback that a component logs repeatedly is shown once and then counted, like those of
    reported errors, which the embedded cluster counts.
    """

    def __init__(self, progress: RunView, in_full: bool) -> None:
        super().__init__()
        self._in_full = in_full
        self._show = progress.message
        self.repeats = Repeats(lambda style, text: progress.message(text, style))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            style = (
                "red" if record.levelno >= logging.ERROR else "yellow" if record.levelno >= logging.WARNING else "dim"
            )
            text = masked_text(self.format(record))
            if self._in_full or "\nTraceback" not in text:
                self._show(text, style)
            else:
                self.repeats.report(style, text, record.name)
        except Exception:  # noqa: BLE001 - as logging's own handlers: a log line must not end the run
            self.handleError(record)


def _show_log(progress: RunView, level: int, has_page: bool) -> _ToRunView:
    """Show the log from a level on; a page shows it from INFO on, too."""
    logging.addLevelName(5, "TRACE")
    handler = _ToRunView(progress, in_full=level <= logging.DEBUG)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    handler.setLevel(level)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(min(level, logging.INFO) if has_page else level)
    return handler

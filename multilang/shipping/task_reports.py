"""The reports of a topology's tasks about themselves, from its workers' logs."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from multilang.component.task_report import PREFIX, read_report
from multilang.shipping.errors import ShippingError
from multilang.shipping.log_records import RecordReader
from multilang.shipping.worker_logs import (
    LOG,
    end_of_file,
    found_by_logviewer,
    logviewer_port,
    shared_folder,
    workers,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from multilang.component.task_report import TaskReport
    from multilang.shipping.worker_logs import WorkerPlace

EVERY_SECS = 10.0  # between two looks at the logs, of which each has a report a minute of each task
_SIZE = 4 * 1024 * 1024  # bytes at a log's end in which reports are looked for
_ANSWER_SECS = 3.0  # for a logviewer
_AGAIN_SECS = 60.0  # until a logviewer that did not answer is asked again
_INTERVALS = 3  # that a report is good for,
_LEAST_SECS = 20.0  # each of them counted as at least so many


class TaskReports:
    """The last report of each task of a topology.

    A report is too old some intervals after it was found here, since the clock of a worker's host may be another one. Of one that was
    there at the first look, only its own time tells its age.

    Args:
        conf: Returns the conf of Nimbus.
    """

    def __init__(self, conf: Callable[[], Mapping[str, Any]]) -> None:
        self._ask_conf = conf
        self._conf: Mapping[str, Any] | None = None
        self._reports: dict[tuple[str, int], tuple[TaskReport, float]] = {}  # with the instant from which it is too old
        self._next = 0.0
        self._silent: dict[str, float] = {}  # host -> when its logviewer is asked again

    def read(self, info: Any) -> dict[tuple[str, int], TaskReport]:
        """Return the reports by component and task, those that are too old left out. ``info``: Storm's TopologyInfo."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + EVERY_SECS
            with suppress(ShippingError):  # without the reports, the status has only what Storm knows
                for key, report in dict(self._read(info)).items():
                    self._take(key, report, now)
        return {key: report for key, (report, until) in self._reports.items() if now <= until}

    def _take(self, key: tuple[str, int], report: TaskReport, now: float) -> None:
        known, _ = self._reports.get(key, (None, 0.0))
        if known is None or known.time != report.time:
            age = max(time.time() - report.time, 0.0) if known is None else 0.0
            self._reports[key] = report, now - age + _INTERVALS * max(report.secs, _LEAST_SECS)

    def _read(self, info: Any) -> Iterator[tuple[tuple[str, int], TaskReport]]:
        """Return what is in the logs, oldest first, of each task that its worker has now."""
        places = workers(info)
        if self._conf is None:
            self._conf = self._ask_conf()
        here = shared_folder(self._conf, info.id, places)
        for place in places:
            if here is not None:
                lines: Iterable[str] = end_of_file(here / str(place.port) / LOG, _SIZE)
            else:
                lines = self._of_logviewer(place, info.id, logviewer_port(self._conf))
            tasks = {
                (each.component_id, task)
                for each in info.executors
                if (each.host, each.port) == (place.host, place.port)
                for task in range(each.executor_info.task_start, each.executor_info.task_end + 1)
            }
            reader = RecordReader()
            for record in (*reader.add(line for line in lines if PREFIX in line), *reader.rest()):
                report = read_report(record.text)
                component = record.component
                if report is not None and component is not None and (component, report.task) in tasks:
                    yield (component, report.task), report

    def _of_logviewer(self, place: WorkerPlace, id: str, port: int) -> list[str]:
        now = time.monotonic()
        if now < self._silent.get(place.host, 0.0):
            return []
        try:
            return found_by_logviewer(place, id, port, _SIZE, "TASK {", _ANSWER_SECS)
        except ShippingError:
            self._silent[place.host] = time.monotonic() + _AGAIN_SECS
            return []

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

    Args:
        conf: Returns the conf of Nimbus.
    """

    def __init__(self, conf: Callable[[], Mapping[str, Any]]) -> None:
        self._ask_conf = conf
        self._conf: Mapping[str, Any] | None = None
        self._reports: dict[tuple[str, int], TaskReport] = {}
        self._next = 0.0
        self._silent: dict[str, float] = {}  # host -> when its logviewer is asked again

    def read(self, info: Any) -> dict[tuple[str, int], TaskReport]:
        """Return the reports by component and task, those that are too old left out. ``info``: Storm's TopologyInfo."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + EVERY_SECS
            with suppress(ShippingError):  # without the reports, the status has only what Storm knows
                for component, report in self._read(info):
                    known = self._reports.get((component, report.task))
                    if known is None or known.time <= report.time:
                        self._reports[component, report.task] = report
        oldest = time.time()
        return {
            key: report
            for key, report in self._reports.items()
            if oldest - report.time <= _INTERVALS * max(report.secs, _LEAST_SECS)
        }

    def _read(self, info: Any) -> Iterator[tuple[str, TaskReport]]:
        places = workers(info)
        if self._conf is None:
            self._conf = self._ask_conf()
        here = shared_folder(self._conf, info.id, places)
        for place in places:
            if here is not None:
                lines: Iterable[str] = end_of_file(here / str(place.port) / LOG, _SIZE)
            else:
                lines = self._of_logviewer(place, info.id, logviewer_port(self._conf))
            reader = RecordReader()
            for record in (*reader.add(line for line in lines if PREFIX in line), *reader.rest()):
                report = read_report(record.text)
                if report is not None and record.component is not None:
                    yield record.component, report

    def _of_logviewer(self, place: WorkerPlace, id: str, port: int) -> list[str]:
        now = time.monotonic()
        if now < self._silent.get(place.host, 0.0):
            return []
        try:
            return found_by_logviewer(place, id, port, _SIZE, "TASK {", _ANSWER_SECS)
        except ShippingError:
            self._silent[place.host] = time.monotonic() + _AGAIN_SECS
            return []

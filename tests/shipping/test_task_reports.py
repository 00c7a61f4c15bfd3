"""The reports of a topology's tasks are read from the logs of its workers: from files here, or from logviewers."""

from __future__ import annotations

import time
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote_plus, urlsplit

import pytest

from multilang.component.task_report import TaskReport
from multilang.shipping import task_reports
from multilang.shipping.task_reports import TaskReports
from multilang.shipping.thrift_types import types
from multilang.shipping.topology_status import topology_status

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ID = "words-1-100"


def topology(*executors: tuple[str, int, str, int]) -> Any:
    """Return Storm's TopologyInfo, with executors of one task each: component, task, host, port."""
    thrift = types()
    return thrift.TopologyInfo(
        id=ID,
        name="words",
        uptime_secs=100,
        status="ACTIVE",
        errors={},
        executors=[
            thrift.ExecutorSummary(
                executor_info=thrift.ExecutorInfo(task_start=task, task_end=task),
                component_id=component,
                host=host,
                port=port,
                uptime_secs=90,
                stats=None,
            )
            for component, task, host, port in executors
        ],
    )


def log(folder: Path, port: int, component: str, *reports: TaskReport) -> None:
    (folder / ID / str(port)).mkdir(parents=True, exist_ok=True)
    with (folder / ID / str(port) / "worker.log").open("a") as file:
        for report in reports:
            file.write(
                "2026-01-02 03:04:05.678 o.a.s.s.ShellSpout Thread-22 [INFO] "
                f"ShellLog pid:123, name:{component} {report.line()}\n"
            )
        file.write(f"2026-01-02 03:04:05.678 o.a.s.d.w.Worker main [INFO] TASK {{ of Storm's own {component}\n")


@pytest.fixture
def written(tmp_path: Path) -> Path:
    now = time.time()
    call = ("process", 12.0, "<words>.py:7 in process")
    old = TaskReport(3, now - 600, 60, 60)
    log(tmp_path, 6700, "split", TaskReport(2, now - 61, 60, 60), TaskReport(2, now - 1, 60, 15), old)
    log(tmp_path, 6701, "count", TaskReport(4, now, 10, 9, [("a & b", "counter", 7, None)], call))
    return tmp_path


@pytest.fixture
def logviewer(written: Path) -> Iterator[int]:
    """The page that LogviewerLogPageHandler makes of the lines with a text, which it escapes twice."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            query = {name: each for name, [each] in parse_qs(asked.query).items()}
            assert (asked.path, int(query["length"]) <= 10485760) == ("/api/v1/log", True)
            text = escape((written / unquote_plus(query["file"])).read_text())
            found = "\n".join(line for line in text.split("\n") if query["grep"] in line)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f'<html><body><h3>x</h3><pre id="logContent">{escape(found)}</pre></body>'.encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("where", ["folder", "logviewer"])
def test_the_status_has_the_last_report_of_each_task(where: str, written: Path, request: Any) -> None:
    if where == "folder":
        conf: dict[str, Any] = {"storm.workers.artifacts.dir": str(written)}
        others = "127.0.0.1"
    else:
        conf = {"logviewer.port": request.getfixturevalue("logviewer")}
        others = "localhost"
    info = topology(
        ("split", 2, "127.0.0.1", 6700), ("split", 3, "127.0.0.1", 6700), ("count", 4, others, 6701), ("__acker", 1, others, 6701)
    )  # fmt: skip
    status = topology_status(info, reports=TaskReports(lambda: conf).read(info))
    assert status["split"].capacity == 0.25
    assert [task.capacity for task in status["split"].by_task] == [0.25, None]  # the other one's report is old
    (count,) = status["count"].by_task
    assert (status["count"].capacity, count.capacity) == (0.9, 0.9)
    assert [(each.name, each.kind, each.value) for each in count.metrics] == [("a & b", "counter", 7)]
    assert count.call is not None
    assert count.call.secs >= 12
    (line,) = status.long_calls
    assert line.startswith("count task 4 has been in process for 1")
    assert line.endswith(" s (<words>.py:7 in process)")
    assert status["__acker"].capacity is None


def test_without_a_log_that_can_be_read_the_figures_are_unknown_and_nobody_is_asked_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def silent(place: Any, *_: object) -> list[str]:
        asked.append(place.host)
        raise task_reports.ShippingError("nobody answers")

    monkeypatch.setattr(task_reports, "found_by_logviewer", silent)
    monkeypatch.setattr(task_reports, "EVERY_SECS", 0.0)
    info = topology(("split", 2, "a", 6700), ("split", 3, "a", 6701), ("count", 4, "b", 6701))
    reports = TaskReports(dict)
    for _ in range(3):
        assert topology_status(info, reports=reports.read(info))["split"].capacity is None
    assert asked == ["a", "b"]


@pytest.mark.parametrize("skew", [-3600, 0, 3600])
def test_the_clock_of_a_worker_may_be_another_one_and_so_may_that_of_its_next_worker(
    skew: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_reports, "EVERY_SECS", 0.0)
    reports = TaskReports(lambda: {"storm.workers.artifacts.dir": str(tmp_path)})

    def capacity(port: int, *written: TaskReport) -> float | None:
        log(tmp_path, port, "split", *written)
        info = topology(("split", 2, "127.0.0.1", port), ("count", 3, "127.0.0.1", 6700))
        return topology_status(info, reports=reports.read(info))["split"].capacity

    now = time.time() + skew
    capacity(6700, TaskReport(2, now - 60, 60, 15))
    assert capacity(6700, TaskReport(2, now, 60, 30)) == 0.5
    assert (
        capacity(6701, TaskReport(2, now - 1800, 60, 45)) == 0.75
    )  # it moved to a worker whose clock is half an hour behind
    assert capacity(6701) == 0.75

"""A pytest plugin that reports to ``tests.suite`` what each test does, and ends a process in which a test hangs.

Every process of a run has a file in the run's folder, named by its pid, into which its stacks are written: when the run asks
for them (``STACKS``), or when a test is over its time limit and Python code can't end it, because a library holds the lock of
the interpreter or the test catches every exception. The process that counts (with pytest-xdist, the one that runs no tests)
writes ``events``, one JSON object per line.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler.loadgroup import LoadGroupScheduling

if TYPE_CHECKING:
    from collections.abc import Generator

    from xdist.workermanage import WorkerController

FOLDER = "MULTILANG_TEST_RUN"  # the environment variable that names the run's folder
ONLY = "only"  # a file there with the names of the tests that are run, as JSON; without it all are
EVENTS = "events"
STACKS_SUFFIX = ".stacks"
STACKS = signal.SIGUSR2


def last_limit(secs: float) -> float:
    """Return the seconds after which a process is ended whose test has ``secs``, and should have ended itself."""
    return 1.25 * secs + 5


def pytest_configure(config: pytest.Config) -> None:
    folder = Path(os.environ[FOLDER])
    config.pluginmanager.register(Guard(folder))
    if (folder / ONLY).exists():
        config.pluginmanager.register(Only(set(json.loads((folder / ONLY).read_text(encoding="utf-8")))))
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Events(folder))


class Guard:
    """Ends this process, with its stacks, if a test does not end by itself."""

    def __init__(self, folder: Path) -> None:
        self.file = open(folder / f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}-{os.getpid()}{STACKS_SUFFIX}", "w")  # noqa: SIM115 - open for as long as the process
        faulthandler.register(STACKS, file=self.file, all_threads=True)

    # For each phase: pytest disarms it when a test fails.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.arm(item)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        self.arm(item)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        self.arm(item)

    def arm(self, item: pytest.Item) -> None:
        if secs := time_limit(item):
            faulthandler.dump_traceback_later(last_limit(secs), exit=True, file=self.file)

    def pytest_runtest_logfinish(self) -> None:
        faulthandler.cancel_dump_traceback_later()

    # A report with half a character can't be sent to the process that counts, and would end this one.
    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if not _is_sent(report.longreprtext) or not all(map(_is_sent, sum(report.sections, ()))):
            if report.failed:  # else it may be the place of a skip
                report.longrepr = report.longreprtext.encode("utf-8", "backslashreplace").decode()
            report.sections = [
                (title, text.encode("utf-8", "backslashreplace").decode()) for title, text in report.sections
            ]
        return report


def _is_sent(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def time_limit(item: pytest.Item) -> float:
    """Return the seconds that pytest-timeout gives a test, 0 for no limit."""
    mark = item.get_closest_marker("timeout")
    if mark is not None and mark.args:
        return float(mark.args[0])
    given = item.config.getoption("timeout")  # by whoever calls pytest
    return float(item.config.getini("timeout") if given is None else given)


class Only:
    """Leaves out all tests but some, whatever group they are in."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.files = {each.partition("::")[0] for each in names}

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        if collection_path.is_dir():
            return None
        return os.path.relpath(collection_path, config.rootpath).replace(os.sep, "/") not in self.files or None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        yield
        left_out = [item for item in items if name(item.nodeid) not in self.names]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if name(item.nodeid) in self.names]


class Events:
    """Writes what happens to each test."""

    def __init__(self, folder: Path) -> None:
        self.file = open(folder / EVENTS, "w", encoding="utf-8")  # noqa: SIM115
        self.are_over = False

    def write(self, event: str, **more: Any) -> None:
        self.file.write(json.dumps({"event": event, "at": time.time(), **more}) + "\n")
        self.file.flush()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.write("uncollected", test=report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self.write("collected", tests=len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self.write("collected", tests=len(ids))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Groups:
        return Groups(config, log)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.write("begun", test=name(nodeid))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.write("ended", test=name(nodeid))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self.are_over = True

    # The reporter prints a letter per test where this gives one; the run shows its progress instead.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> Generator[None, Any, Any]:
        category, letter, word = yield
        if self.are_over or not isinstance(report, pytest.TestReport):
            return category, letter, word
        said: dict[str, Any] = {}
        if report.failed:
            why = reason(report)
            # Whatever happened at its end may come of what other tests left: alone, it would pass.
            stays = report.when not in ("setup", "call") and (report.when != "teardown" or "pytest-timeout" in why)
            said = {"text": report.longreprtext, "reason": why, "stays": stays}
        self.write(
            "report", test=name(report.nodeid), category=category, secs=report.duration, phase=report.when, **said
        )
        return category, "", ""


class Groups(LoadGroupScheduling):
    """Gives each group of tests to one process, and a test whose process ended to no other.

    With pytest-xdist's own scheduler that test is run again, and the run waits for ever if a process is given one last test, which
    it begins when it knows that it is the last.
    """

    def remove_node(self, node: WorkerController) -> str | None:
        units = self.assigned_work.pop(node)
        unended = [(unit, test) for unit in units.values() for test, is_done in unit.items() if not is_done]
        if not unended:
            return None
        unit, under_way = unended[0]
        unit[under_way] = True
        self.workqueue.update({scope: unit for scope, unit in units.items() if not all(unit.values())})
        for other in self.assigned_work:
            self._reschedule(other)
        return under_way

    def _reschedule(self, node: WorkerController) -> None:
        if not node.shutting_down and node in self.registered_collections:  # a new process may still collect
            while self.workqueue and self._pending_of(self.assigned_work[node]) < 2:
                self._assign_work_unit(node)
            if not self.workqueue:
                node.shutdown()


def name(nodeid: str) -> str:
    """Return a test's name without the group that pytest-xdist appends."""
    test, at, group = nodeid.rpartition("@")
    return test if at and "]" not in group and "::" not in group else nodeid


def reason(report: pytest.TestReport) -> str:
    """Return in a line what a test failed with."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return str(crash.message).partition("\n")[0]
    return report.longreprtext.rstrip().rpartition("\n")[2]

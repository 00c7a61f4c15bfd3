"""The records in a worker's log: which component wrote them, and which of their lines are only Java's stack."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from multilang.component.task_report import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LEVELS = ("trace", "debug", "info", "warn", "error")

# Storm's pattern in worker.xml is "%d{yyyy-MM-dd HH:mm:ss.SSS} %c{1.} %t [%p] %msg%n"; some leave the date out.
_FIRST = re.compile(
    r"(?P<time>(?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d[.,]\d{3}\S*) (?P<logger>\S+) (?P<thread>.*?) "
    r"\[(?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\] (?P<text>.*)"
)
_SHELL_LOG = re.compile(
    r"ShellLog pid:(?P<pid>\d+), name:(?P<name>\S+) "
)  # org.apache.storm.utils.DefaultShellLogHandler
_PROCESS = re.compile(r"\bpid:\d+, name:([^\s,]+)")
_RAISED = re.compile(r": [^:]+ in component '([^']+)' \(task (\d+)\)")  # of what a component reports
_THREAD = re.compile(r"Thread-\d+-(.+)-executor\[(?P<first>\d+), (?P<last>\d+)\]")
_LAUNCHED = re.compile(r"Launched subprocess with pid (\d+)")  # org.apache.storm.task.ShellBolt, and of spouts
_JAVA = re.compile(r"\s+at [\w.$<>/@]+\(|\s+\.\.\. \d+ (?:more|common frames)|\s*$")
_CAUSE = re.compile(r"Caused by: |(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error|Throwable)\b")


@dataclass
class Record:
    """One record of a log.

    Attributes:
        time: Its time, as it stands there.
        level: Its level, one of LEVELS.
        component: The component that it is of; None: of the worker.
        is_own: True if the component wrote it, and not Storm about it, nor this library for its status.
        lines: Its text, without Java's stack and the log's prefix of a component's text.
        java: The number of lines of Java's stack that were left out.
        task: The component's task; None: not known.
    """

    time: str
    level: str
    component: str | None
    is_own: bool
    lines: list[str] = field(default_factory=list)
    java: int = 0
    task: int | None = None

    @property
    def text(self) -> str:
        """Its lines as one text."""
        return "\n".join(self.lines)


class RecordReader:
    """Makes records of lines as they come.

    A record is known to be whole when the next one begins, or when nothing more has come for a while (``rest``).
    """

    def __init__(self) -> None:
        self._last: Record | None = None
        self._tasks: dict[str, int] = {}  # by the pid
        self._threads: dict[str, tuple[str, int | None]] = {}  # component and task that a thread reads from

    def add(self, lines: Iterable[str]) -> Iterator[Record]:
        """Return the records that are whole after these lines."""
        for line in lines:
            first = _FIRST.match(line)
            if first is not None:
                if self._last is not None:
                    yield self._last
                self._last = self._begun(first)
            elif self._last is not None:
                _continue(self._last, line)
            else:  # of another pattern, or of a record whose beginning was rolled over: shown, whatever it is
                yield Record("", "info", None, True, [line])

    def rest(self) -> Iterator[Record]:
        """Return the record that no other one has followed yet, if there is one."""
        last, self._last = self._last, None
        if last is not None:
            yield last

    def _begun(self, first: re.Match[str]) -> Record:
        text = first["text"]
        own = _SHELL_LOG.match(text)
        level = {"FATAL": "error"}.get(first["level"], first["level"].lower())
        thread = _THREAD.match(first["thread"])
        task = int(thread["first"]) if thread and thread["first"] == thread["last"] else None
        if own is not None:
            text = text[own.end() :]
            task = self._tasks.get(own["pid"], task)
            self._threads[first["thread"]] = own["name"], task
            return Record(first["time"], level, own["name"], not text.startswith(PREFIX), [text], task=task)
        if task is not None and (launched := _LAUNCHED.match(text)):
            self._tasks[launched[1]] = task
        named = _PROCESS.search(text) or thread
        component = named[1] if named else None
        if component is None:
            component, task = self._threads.get(first["thread"], (None, None))
        return Record(first["time"], level, component, False, [text], task=task)


def _continue(record: Record, line: str) -> None:
    if _JAVA.match(line) and (line.strip() or record.java):
        record.java += 1
    elif not record.is_own and (not line.strip() or (record.java and not _CAUSE.match(line))):
        record.java += 1  # of a Java exception's text
    else:
        if record.component is None:
            named = _PROCESS.search(line)
            raised = _RAISED.search(line)
            if raised is not None:
                record.component, record.task = raised[1], int(raised[2])
            elif named is not None:
                record.component = named[1]
        record.lines.append(line)

"""The page of a run, seen from the run's process: a child process serves it, and asks for the status."""

from __future__ import annotations

import json
import logging
import subprocess
import threading
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING

from multilang.component.errors import ConfigError
from multilang.engine.child import environment, module_command

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

    from multilang.engine.status import RunStatus

PORT = 8765
MAX_LINES = 2000  # of the log until a page asks for them
WATCHED_SECS = 5.0  # after the last question
END_SECS = 10.0  # until a page's process that does not end by itself is ended


class RunPage:
    """A page that shows a run until its ``close``. It is a context manager.

    As long as no browser looks at it, the run is not asked for anything.

    Args:
        source: Returns the status, or None as long as there is none; called in another thread. A topology that runs in
            this process is asked for its status by the thread that waits for it: give what that thread stored.
        port: The port; when it is taken, one of the next 99; 0 for any free one.
        host: The address to listen at.

    Attributes:
        url: The page's address. It holds a token, without which nothing is shown.

    Raises:
        ConfigError: NiceGUI is not installed, or no port is free.
    """

    def __init__(self, source: Callable[[], RunStatus | None], port: int = PORT, host: str = "127.0.0.1") -> None:
        self._source = source
        self._log = RunLog()
        self._asked_at = float("-inf")
        command = [*module_command("multilang.page.child"), host, str(port)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        first = self._from.readline()
        greeting = json.loads(first) if first else {"error": "the page's process ended before it could be opened"}
        if "error" in greeting:
            self._end()
            self._from.close()
            raise ConfigError(greeting["error"])
        self.url: str = greeting["url"]
        logging.getLogger().addHandler(self._log)
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._answer, name="multilang-page", daemon=True)
        self._thread.start()

    @property
    def is_watched(self) -> bool:
        """True if the page is watched, or was a moment ago."""
        return monotonic() < self._asked_at + WATCHED_SECS

    def close(self, last: RunStatus | None = None) -> None:
        """End the page.

        Args:
            last: The last status, which browsers still show.
        """
        logging.getLogger().removeHandler(self._log)
        if last is not None:
            self._write(b"last " + _line(last, self._log.taken()))
        self._end()
        self._thread.join(END_SECS)
        self._from.close()

    def __enter__(self) -> RunPage:  # noqa: PYI034 - Self is not in Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answer(self) -> None:
        for _question in self._from:
            self._asked_at = monotonic()
            try:
                line = _line(self._source(), self._log.taken())
            except Exception as error:  # noqa: BLE001 - whatever it is, the page shows it, and asks again
                line = json.dumps({"error": str(error) or repr(error)}).encode() + b"\n"
            if not self._write(line):
                return

    def _write(self, line: bytes) -> bool:
        with self._lock:
            try:
                self._to.write(line)
                self._to.flush()
            except (OSError, ValueError):  # the page's process has ended: the run continues without it
                return False
        return True

    def _end(self) -> None:
        try:
            self._to.close()
        except OSError:
            pass
        try:
            self._process.wait(END_SECS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class RunLog(logging.Handler):
    """The last records of this process's log that the page has not got yet."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: deque[dict[str, Any]] = deque(maxlen=MAX_LINES)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = {
                "at": record.created,
                "level": record.levelname.lower(),
                "component": record.name,
                "task": getattr(record, "task", None),
                "text": self.format(record),
            }
        except Exception:  # noqa: BLE001 - as logging's own handlers: a log line must not end the run
            self.handleError(record)
        else:
            self._lines.append(line)

    def taken(self) -> list[dict[str, Any]]:
        """Return the records since the last call; any thread may call."""
        self.acquire()  # as logging does around ``emit``
        try:
            lines = list(self._lines)
            self._lines.clear()
        finally:
            self.release()
        return lines


def _line(status: RunStatus | None, log: list[dict[str, Any]]) -> bytes:
    document = {"status": None if status is None else status.as_json(), "log": log}
    return json.dumps(document).encode() + b"\n"

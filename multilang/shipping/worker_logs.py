"""The logs of a topology's workers, from a folder on this machine or from the logviewers beside the supervisors."""

from __future__ import annotations

import os
import re
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html import unescape
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote

from multilang.shipping.errors import ShippingError, unreachable
from multilang.transport.http_in_time import opened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import BinaryIO


ARTIFACTS = "workers-artifacts"
LOG = "worker.log"
LOGVIEWER_PORT = 8000  # logviewer.port in Storm's defaults.yaml
TIMEOUT = 30.0  # seconds without a byte from a logviewer
ANSWER_SECS = 600.0  # from a logviewer's first byte to its last
MAX_LINE = 64 * 1024  # bytes of a line; the rest of a longer one is another line
MAX_PIECE = 8 * 1024 * 1024  # bytes of a log on this machine that are read at once
MAX_SHOWN = 64 * 1024 * 1024  # bytes of the lines that are shown
_FOUND = re.compile(r'<pre id="logContent">([^<]*)</pre>')
MAX_READ = 4 * 1024 * 1024 * 1024  # bytes of a logviewer's answer, whose end is what is wanted


@dataclass
class WorkerPlace:
    """A worker by host and port. ``components``: the components that run in it now; empty for one that has ended."""

    host: str
    port: int
    components: list[str] = field(default_factory=list)


def workers(info: Any, component: str | None = None) -> list[WorkerPlace]:
    """Return the workers in Storm's TopologyInfo, or those that run ``component``.

    Raises ShippingError if there are none of those.
    """
    found: dict[tuple[str, int], WorkerPlace] = {}
    for executor in info.executors:
        worker = found.setdefault((executor.host, executor.port), WorkerPlace(executor.host, executor.port))
        if executor.component_id not in worker.components:
            worker.components.append(executor.component_id)
    chosen = [each for each in found.values() if component is None or component in each.components]
    if component is not None and not chosen:
        known = sorted({id for each in found.values() for id in each.components if not id.startswith("__")})
        raise ShippingError(
            f"no worker of {info.name!r} runs a component {component!r}; there are {', '.join(known) or 'none yet'}"
        )
    return sorted(chosen, key=lambda each: (each.host, each.port))


def local_folder(conf: Mapping[str, Any], id: str) -> Path | None:
    """Return the folder of a topology's logs, if it is on this machine. ``conf``: of Nimbus."""
    places = [conf.get("storm.workers.artifacts.dir")]
    if conf.get("storm.log.dir"):
        places.append(str(Path(conf["storm.log.dir"], ARTIFACTS)))
    return next((Path(place, id) for place in places if place and _is_open(Path(place, id))), None)


def shared_folder(conf: Mapping[str, Any], id: str, places: Iterable[WorkerPlace]) -> Path | None:
    """Return the folder of a topology's logs, if it is on this machine and has those of all these workers."""
    # If the workers are on several hosts, a folder on this machine has the logs of only one of them.
    return local_folder(conf, id) if len({each.host for each in places}) <= 1 else None


def logviewer_port(conf: Mapping[str, Any]) -> int:
    """Return the port of the logviewers. ``conf``: of Nimbus."""
    port: int = conf.get("logviewer.port") or LOGVIEWER_PORT
    return port


def _is_open(path: Path) -> bool:
    """Return whether there is such a folder that this account may enter: those of Storm's own account are closed."""
    return os.access(path, os.R_OK | os.X_OK) and path.is_dir()


def newest_folder(folder: Path, name: str) -> Path:
    """Return the log folder of the latest topology called ``name``, in a folder of Storm's logs. Raises ShippingError."""
    ours = re.compile(re.escape(name) + r"-\d+-(\d+)")  # Nimbus appends a serial number and a time
    places = [folder / ARTIFACTS, folder]
    try:
        found = [
            (int(match[1]), path)
            for place in places
            if place.is_dir()
            for path in place.iterdir()
            if (match := ours.fullmatch(path.name)) and path.is_dir()
        ]
    except PermissionError as error:
        raise ShippingError(
            f"{error.filename} is closed to this account: read the logs as the account of Storm's daemons, or through "
            "`storm logviewer`, without --folder"
        ) from None
    if not found:
        raise ShippingError(
            f"{folder} holds no log of a topology {name!r}; name Storm's folder of logs, or its {ARTIFACTS}"
        )
    return max(found)[1]


def local_workers(folder: Path, known: Iterable[WorkerPlace] = ()) -> list[tuple[WorkerPlace, Path]]:
    """Return each worker's log in a topology's folder. Workers that are not in ``known`` have ended."""
    by_port = {each.port: each for each in known}
    ports = sorted(int(path.parent.name) for path in folder.glob(f"*/{LOG}") if path.parent.name.isdigit())
    return [(by_port.get(port, WorkerPlace("", port)), folder / str(port) / LOG) for port in ports]


def tail_of_file(path: Path, lines: int) -> list[str]:
    """Return the last lines of a log on this machine. Raises ShippingError."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return _tail(iter(lambda: file.readline(MAX_LINE), ""), lines)
    except OSError as error:
        raise ShippingError(f"{path} can't be read: {error.strerror or error}") from None


def end_of_file(path: Path, size: int) -> list[str]:
    """Return the lines in the last bytes of a log on this machine; none if it can't be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - size, 0))
            return file.read(size).decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def found_by_logviewer(worker: WorkerPlace, id: str, port: int, size: int, text: str, secs: float) -> list[str]:
    """Return the lines with a text in the last bytes of a log, from the logviewer on the worker's host.

    Args:
        worker: The worker.
        id: The topology's id.
        port: The logviewer's port.
        size: The number of bytes that are looked at.
        text: What the lines have; no character of it has a meaning in HTML.
        secs: The longest time that each step of the answer may take.

    Raises:
        ShippingError: The logviewer does not answer.
    """
    query = f"log?file={_file(worker, id)}&length={size}&grep={quote(text)}"
    with _answered(worker, port, query, secs, secs, 4 * size) as answer:
        page = answer.read().decode("utf-8", "replace")
    found = _FOUND.search(page)
    return [] if found is None else unescape(unescape(found[1])).splitlines()  # the logviewer escapes it twice


def tail_of_logviewer(worker: WorkerPlace, id: str, port: int, lines: int) -> list[str]:
    """Return the last lines, from the logviewer on the worker's host. Raises ShippingError."""
    with _downloaded(worker, id, port) as found:
        return _tail(found, lines)


def followed(info: Any, conf: Mapping[str, Any]) -> dict[str, FollowedFile | FollowedLogviewer]:
    """Return the log of each worker in Storm's TopologyInfo, on this machine or from logviewers. ``conf``: of Nimbus."""
    places = workers(info)
    here = shared_folder(conf, info.id, places)
    if here is not None:
        return {
            f"{worker.host or 'ended'}:{worker.port}": FollowedFile(path)
            for worker, path in local_workers(here, places)
        }
    port = logviewer_port(conf)
    return {f"{each.host}:{each.port}": FollowedLogviewer(each, info.id, port) for each in places}


@contextmanager
def _downloaded(worker: WorkerPlace, id: str, port: int) -> Iterator[Iterator[str]]:
    """Give the lines of a log, from the logviewer on the worker's host. Raises ShippingError."""
    with _answered(worker, port, f"download?file={_file(worker, id)}", TIMEOUT, ANSWER_SECS, MAX_READ) as answer:
        yield _lines_of(answer)


def _file(worker: WorkerPlace, id: str) -> str:
    # quoted twice, because the logviewer decodes once more what its server has decoded
    return quote(quote(f"{id}/{worker.port}/{LOG}", safe=""), safe="")


@contextmanager
def _answered(
    worker: WorkerPlace, port: int, query: str, timeout: float, answer_secs: float, most: int
) -> Iterator[Any]:
    """Give the answer of the logviewer on the worker's host. Raises ShippingError."""
    host = f"[{worker.host}]" if ":" in worker.host else worker.host
    where = f"http://{host}:{port}"
    try:
        with opened(f"{where}/api/v1/{query}", timeout, answer_secs, most) as answer:
            yield answer
    except HTTPError as error:
        with error:
            raise ShippingError(
                f"the logviewer at {where} does not show the log of worker {worker.port}: HTTP {error.code} {error.reason}"
            ) from None
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        reason_text = " ".join(str(getattr(reason, "strerror", None) or reason).split())
        raise unreachable(
            f"no logviewer answers at {where} ({reason_text}): start `storm logviewer` on "
            "each supervisor, or name a folder of Storm's logs with --folder"
        ) from None
    except HTTPException as error:
        raise ShippingError(f"the logviewer at {where} shows no log: {error}; is it one?") from None


class FollowedFile:
    """A log on this machine whose lines are read as they come.

    It stays open, so that what is written to it until it is rolled over is read, too, whatever becomes of its name.

    Args:
        path: The file; it need not be there yet.
        most: The largest number of bytes that are read at once.
    """

    def __init__(self, path: Path, most: int = MAX_PIECE) -> None:
        self._path = path
        self._most = most
        self._file: BinaryIO | None = None
        self._rest = b""
        self._has_more = False  # whether the last call returned anything

    def lines(self) -> list[str]:
        """Return the lines since the last call. A log that was rolled over begins anew."""
        lines: list[str] = []
        data = self._more()
        if not data and self._is_another():
            data = self._more()  # what came before its name was another's
            if not data:
                if self._rest:
                    lines += self._whole(b"\n")
                self._open()
                data = self._more()
        self._has_more = bool(data)
        return lines + self._whole(data)

    def every(self) -> Iterator[list[str]]:
        """Return all lines that there are, in pieces of which each fits into memory."""
        self._has_more = True
        while self._has_more:
            yield self.lines()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __del__(self) -> None:
        self.close()

    def _more(self) -> bytes:
        if self._file is None:
            return b""
        try:
            if os.fstat(self._file.fileno()).st_size < self._file.tell():
                self._file.seek(0)
                self._rest = b""
            return self._file.read(self._most)
        except OSError:
            return b""

    def _is_another(self) -> bool:
        """Return whether the file of this name is not the one that is open."""
        try:
            return self._file is None or not os.path.samestat(os.stat(self._path), os.fstat(self._file.fileno()))
        except OSError:
            return False  # it was removed with its topology, or the new one is not there yet

    def _open(self) -> None:
        self.close()
        with suppress(OSError):  # it is not there yet
            self._file = self._path.open("rb", buffering=0)

    def _whole(self, data: bytes) -> list[str]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE:
            lines.append(self._rest)
            self._rest = b""
        return [line.rstrip(b"\r").decode("utf-8", "replace") for line in lines]


class FollowedLogviewer:
    """A log that a logviewer shows, whose lines are read as they come. Each look reads the file from its beginning.

    Args:
        worker: The worker.
        id: The topology's id.
        port: The logviewer's port.
    """

    def __init__(self, worker: WorkerPlace, id: str, port: int) -> None:
        self._parts = (worker, id, port)
        self._seen = 0
        self._first = ""  # line, by which a log is known from the one before it

    def lines(self) -> list[str]:
        """Return the lines that have come since the last call. A log that was rolled over begins anew.

        Raises ShippingError.
        """
        found: deque[str] = deque()
        number = size = 0
        with _downloaded(*self._parts) as lines:
            for number, line in enumerate(lines, 1):
                if number == 1:
                    if not (self._first and line.startswith(self._first)):  # it may not have been whole
                        self._seen = 0
                    self._first = line
                if number > self._seen:
                    found.append(line.rstrip("\r\n"))
                    size += len(found[-1])
                    while size > MAX_SHOWN:
                        size -= len(found.popleft())
        if number < self._seen:
            self._seen = 0
            return self.lines()
        self._seen = number
        return list(found)

    def every(self) -> Iterator[list[str]]:
        """Return all lines that there are."""
        yield self.lines()


def _tail(lines: Iterable[str], count: int) -> list[str]:
    """Return the last lines, no more than memory should hold."""
    last_lines: deque[str] = deque()
    size = 0
    for line in lines:
        last_lines.append(line.rstrip("\r\n"))
        size += len(last_lines[-1])
        while len(last_lines) > count or size > MAX_SHOWN:
            size -= len(last_lines.popleft())
    return list(last_lines)


def _lines_of(answer: Any) -> Iterator[str]:
    while line := answer.readline(MAX_LINE):
        yield line.decode("utf-8", "replace")

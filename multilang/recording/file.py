"""The file of a recording: a first line about the topology, and then a line for each emit, ack and fail."""

from __future__ import annotations

import os
import time

from multilang.component.errors import ConfigError
from multilang.helpers import private
from multilang.protocol.codec import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from multilang.topology.model import Topology

FORMAT = 1
_DEFAULT = "default"
_BEGIN = b'{"at":'  # of each line but the first; no text has it, since JSON escapes quotes


class Emitted:
    """A tuple that was emitted.

    Attributes:
        at: The seconds since the beginning of the recording.
        task: The id of the task that emitted it.
        stream: Its stream.
        values: Its values.
        id: Its message id; None: it was unreliable.
        direct: The task that it was emitted to; None: the groupings chose.
    """

    __slots__ = ("at", "direct", "id", "stream", "task", "values")

    def __init__(self, at: float, task: int, stream: str, values: list[Any], id: Any, direct: int | None) -> None:
        self.at = at
        self.task = task
        self.stream = stream
        self.values = values
        self.id = id
        self.direct = direct


def new_recording(path: str | Path, topology: Topology) -> None:
    """Make a recording's file, which its user alone may read, with its first line.

    Args:
        path: The file, which must not exist.
        topology: The topology that is going to run.

    Raises:
        ConfigError: The file exists or can't be written, or a spout can't be recorded.
    """
    spouts = {id: spec for id, spec in topology.declared.spouts.items() if not id.startswith("$")}
    foreign = [id for id, spec in spouts.items() if spec.command is not None]
    if foreign:
        raise ConfigError(
            f"spout {foreign[0]!r} is a program in another language, whose emits are not seen here; record a run of its "
            "topology with a spout in Python, or with a stand-in"
        )
    head = {
        "recording": FORMAT,
        "topology": topology.name,
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "spouts": {
            id: {name: list(stream.fields) for name, stream in spec.streams.items()} for id, spec in spouts.items()
        },
    }
    try:
        handle = private.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        raise ConfigError(f"{path} is there already, and is not overwritten; name another file, or remove it") from None
    except OSError as error:
        raise ConfigError(f"{path} can't be written: {error.strerror or error}") from None
    try:
        private.write_all(handle, f"{dumps(head)}\n".encode("utf-8", "surrogatepass"))
    finally:
        os.close(handle)


class Recording:
    """A recording that is read.

    Args:
        path: Its file.

    Attributes:
        path: Its file, as an absolute path.
        topology: The name of the topology that was recorded.
        began: The time at which the recording began, by its first line.
        spouts: By spout, its streams with their fields.
        first_at: The seconds from the recording's beginning to its first tuple: the time until the tasks had started.

    Raises:
        ConfigError: It can't be read, or is no recording.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = os.path.abspath(path)
        try:
            with open(self.path, "rb") as file:
                head: Any = _parsed(file.readline())
        except OSError as error:
            raise ConfigError(f"{path} can't be read: {error.strerror or error}") from None
        if not isinstance(head, dict) or "recording" not in head:
            raise ConfigError(f"{path} is no recording; multilang run --record FILE makes one")
        if head["recording"] != FORMAT:
            raise ConfigError(
                f"{path} is a recording of format {head['recording']!r}, and this version reads {FORMAT}; take a newer one"
            )
        if not _is_head(head):
            raise ConfigError(
                f"line 1 of {path} is not what begins a recording: it names the topology and, of each spout, the streams with "
                "their fields; take it from another recording of that topology"
            )
        self.topology: str = head["topology"]
        self.began = str(head.get("began"))
        self.spouts: Mapping[str, Mapping[str, list[str]]] = head["spouts"]
        self.first_at = next((each["at"] for each in self._lines() if "emit" in each), 0.0)

    def emitted(self, spout: str) -> Iterator[Emitted]:
        """Return what a spout emitted, in order, without what it emitted again because it had failed.

        Args:
            spout: The spout.

        Raises:
            ConfigError: A line is no line of a recording. What a process wrote of its last line, when it was killed or the disk
                was full, is left out.
        """
        for entry in self._lines():
            if entry["spout"] == spout and "emit" in entry and not entry.get("again"):
                yield Emitted(
                    entry["at"],
                    entry["task"],
                    entry.get("stream", _DEFAULT),
                    entry["emit"],
                    entry.get("id"),
                    entry.get("direct"),
                )

    def _lines(self) -> Iterator[dict[str, Any]]:
        """Return each line but the first."""
        with open(self.path, "rb") as file:
            for number, line in enumerate(file, 1):
                if number == 1:
                    continue
                if not line.endswith(b"\n"):  # nothing stuck to it, and what is inside of it is a value
                    entry = _parsed(line)
                    if _is_line(entry):
                        yield entry
                    return
                found = _line(line)
                if found is not None:
                    yield found
                else:
                    raise ConfigError(
                        f"line {number} of {self.path} is no line of a recording; take it out, or mend it"
                    )


def _is_head(entry: dict[str, Any]) -> bool:
    spouts = entry.get("spouts")
    return (
        isinstance(entry.get("topology"), str)
        and isinstance(spouts, dict)
        and all(isinstance(streams, dict) for streams in spouts.values())
        and all(isinstance(fields, list) for streams in spouts.values() for fields in streams.values())
    )


def _is_line(entry: Any) -> bool:
    """Return whether a line has what a replay reads."""
    if not isinstance(entry, dict) or "spout" not in entry:
        return False
    if "emit" not in entry:
        return True
    return (
        type(entry["emit"]) is list
        and type(entry.get("at")) in (float, int)
        and type(entry.get("task")) is int
        and type(entry.get("stream", "")) is str
    )


def _line(line: bytes) -> dict[str, Any] | None:
    """Return the line as an object; of several that a broken one joined, the last; None: it is none."""
    start = 0
    while start >= 0:
        entry = _parsed(line[start:])
        if _is_line(entry):
            return entry  # type: ignore[no-any-return]
        start = line.find(_BEGIN, start + 1)
    return None


def _parsed(line: bytes) -> Any:
    try:
        return loads(line.decode("utf-8", "surrogatepass"))
    except (ValueError, UnicodeDecodeError):
        return None

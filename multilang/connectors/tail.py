"""A file that grows, followed as ``tail -F`` does.

Guarantee: **at least once** while the file is there. A task that is started again goes on from its position, where the
conf has ``multilang.positions`` or alignment is exact; if the file was rotated meanwhile, it first reads the rest of the old
one, which it looks for in the same folder. What is removed before it was read is lost, and reported if that can be seen.
On Storm and the embedded cluster; it has no end, so not in a Spark job.
"""

from __future__ import annotations

import os
import re
from zlib import crc32

from multilang.component.errors import ConfigError
from multilang.connectors.formats import check_encoding
from multilang.connectors.urls import is_url, located
from multilang.state.position_spout import PositionSpout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from multilang.component.context import Context

_LOOK_SECS = 0.2  # between two looks at the file, when all of it is read
_KNOWN_BY = 1024  # bytes before the position, by which a file is known again
_LINES = 64  # that one next_tuple emits at most


class TailSpout(PositionSpout):
    """A spout of the lines that are appended to a file; see the module. The first task reads, others rest.

    A line is emitted when its end is there. A file that was renamed or removed is read until there is something in the new
    one under its name, which is read from its beginning; if it was rotated more than once since, those between come first.
    They are known by a number or date in their names (``app.log.1``, ``app.log-20260131``, ``app-2026-01-31.log``), and their
    order by when they were written last. A file whose last bytes are not those that were read was truncated, and is read from
    its beginning.

    Args:
        path: The file; it need not be there yet.
        field: The name of the field.
        from_end: Whether to begin, at the first start, at the end of what is there.
        encoding: The encoding, one in which a line ends with the byte 10.
        errors: The treatment of bytes that can't be decoded, as for ``bytes.decode``.
    """

    needs_positions = False

    def __init__(
        self,
        path: str | os.PathLike[str],
        field: str = "line",
        from_end: bool = False,
        encoding: str = "utf-8",
        errors: str = "replace",
    ) -> None:
        self.path = located(path)
        if is_url(self.path):
            raise ConfigError(f"{self.path} is a URL, and only files of this machine can be followed; use FileSpout")
        check_encoding(encoding, errors)
        self.from_end = from_end
        self.encoding = encoding
        self.errors = errors
        self.output_fields = [field]  # type: ignore[misc]

    def identity(self) -> Any:
        return {"file": self.path}

    def check_start(self, conf: dict[str, Any]) -> None:
        """Check that the file may be there."""
        super().check_start(conf)
        if not os.path.isdir(os.path.dirname(self.path)):
            raise ConfigError(
                f"there is no folder {os.path.dirname(self.path)} for {self.path}; make it, or name another file"
            )
        if os.path.isdir(self.path):
            raise ConfigError(f"{self.path} is a folder; name the file in it that is to be followed")

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self._reads = context.task_index == 0
        self._file: BinaryIO | None = None
        self._at = 0
        self._partial = b""  # what is behind the last whole line
        self._last = b""  # the end of what was read
        self._look_at = 0.0
        self._idle = not self._reads
        self._begun = False

    def next_tuple(self) -> None:
        if not self._reads:
            return
        if self._file is None and not self._begin():
            return
        if self._is_another():
            self._begin_again()
        for _ in range(_LINES):
            line = self._line()
            if line is None:
                self._at_end()
                return
            self._idle = False
            self._send(line)

    def exhausted(self) -> bool | None:
        return None if self._idle else False

    def position(self) -> Any:
        if self._file is None:
            return {"inode": None}
        inode = os.fstat(self._file.fileno()).st_ino
        return {"inode": inode, "byte": self._at, "length": len(self._last), "crc": crc32(self._last)}

    def seek(self, position: Any) -> None:
        self.close()
        self._begun = True
        if position["inode"] is None:
            return
        for path in self._candidates():
            if self._opened(path, position):
                return
        self.report_error(
            f"{self.path} was rotated while nobody read it, and the old file is not in its folder any more: what came behind byte "
            f"{position['byte']} of it is lost; the new file is read from its beginning"
        )

    def close(self) -> None:
        file, self._file = getattr(self, "_file", None), None
        if file is not None:
            file.close()

    # ---- inside ----

    def _begin(self) -> bool:
        """Open the file under the name; return whether it is there."""
        if self.clock() < self._look_at:
            return False
        self._look_at = self.clock() + _LOOK_SECS
        from_end = self.from_end and not self._begun
        self._begun = True
        if not self._open(self.path):
            self._idle = True
            return False
        if from_end:
            assert self._file is not None
            self._at = self._file.seek(0, 2)
            self._file.seek(max(0, self._at - _KNOWN_BY))
            self._last = self._file.read(min(self._at, _KNOWN_BY))
        return True

    def _open(self, path: str) -> bool:
        """Open a file at its beginning; return whether it is there."""
        try:
            self._file = open(path, "rb")  # noqa: SIM115 - it is closed in close
        except FileNotFoundError:
            return False
        self._at, self._partial, self._last = 0, b"", b""
        return True

    def _is_another(self) -> bool:
        """Return whether the bytes before the place are others than those that were read."""
        assert self._file is not None
        known = self._last + self._partial
        place = self._at + len(self._partial) - len(known)
        return os.pread(self._file.fileno(), len(known), place) != known

    def _begin_again(self) -> None:
        assert self._file is not None
        size = os.fstat(self._file.fileno()).st_size
        self.log(f"{self.path} was truncated to {size} bytes, and is read from its beginning", "warn")
        self._file.seek(0)
        self._at, self._partial, self._last = 0, b"", b""

    def _line(self) -> bytes | None:
        assert self._file is not None
        self._partial += self._file.readline()
        if not self._partial.endswith(b"\n"):
            return None
        return self._taken()

    def _taken(self) -> bytes:
        line, self._partial = self._partial, b""
        self._at += len(line)
        self._last = (self._last + line)[-_KNOWN_BY:]
        return line

    def _send(self, line: bytes) -> None:
        text = line.removesuffix(b"\n").removesuffix(b"\r").decode(self.encoding, self.errors)
        self.emit([text.removeprefix("\ufeff") if self._at == len(line) else text])

    def _at_end(self) -> None:
        """See whether the file was replaced."""
        self._idle = True
        if self.clock() < self._look_at:
            return
        self._look_at = self.clock() + _LOOK_SECS
        assert self._file is not None
        mine = os.fstat(self._file.fileno())
        following = self._following(mine)
        if following is None:
            return
        rest = self._line()  # what came before it was renamed
        while rest is not None or self._partial:
            self._send(rest if rest is not None else self._taken())
            rest = self._line()
        self._idle = False
        self.close()
        self._open(following)
        self._look_at = 0.0

    def _following(self, mine: os.stat_result) -> str | None:
        """Return what is to be read behind this file: one that was rotated later, or else the new one under the name.

        None: it is not rotated, or nothing was written to another one yet. A program that is told of a rotation behind it
        writes to the old file until then.
        """
        named = _found(self.path)
        if named is not None and os.path.samestat(named, mine):
            return None
        name, end = os.path.splitext(os.path.basename(self.path))
        rotated = re.compile(
            rf"{re.escape(name + end)}[-._][-\d_.:T]*\d|{re.escape(name)}[-._]\d{{4}}-?\d\d-?\d\d[-\d_.:T]*{re.escape(end)}"
        )
        candidates = [path for path in self._candidates() if rotated.fullmatch(os.path.basename(path))]
        later = [
            (found.st_mtime_ns, path)
            for path in candidates
            if (found := _found(path)) is not None and found.st_mtime_ns > mine.st_mtime_ns
        ]
        if later:
            return min(later)[1]
        return self.path if named is not None and named.st_size else None

    def _candidates(self) -> list[str]:
        """Return the file, and those in its folder whose names begin with its own: what rotation makes of it."""
        folder, name = os.path.split(self.path)
        stem = os.path.splitext(name)[0]
        try:
            others = [os.path.join(folder, each) for each in sorted(os.listdir(folder)) if each.startswith(stem)]
        except OSError:
            others = []
        return [self.path, *(each for each in others if each != self.path)]

    def _opened(self, path: str, position: Any) -> bool:
        """Open a file if it is the one of a position, and go there."""
        try:
            file = open(path, "rb")  # noqa: SIM115 - it is closed in close
        except OSError:
            return False
        byte, length = position["byte"], position["length"]
        found = os.fstat(file.fileno())
        if found.st_ino == position["inode"] and found.st_size >= byte:
            file.seek(byte - length)
            last = file.read(length)
            if crc32(last) == position["crc"]:
                self._file, self._at, self._last, self._partial = file, byte, last, b""
                return True
        file.close()
        return False


def _found(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None

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
_PACKED = r"\.(gz|bz2|xz|zst|lz4|zip|Z)"
_DATE_DIGITS = 8  # of a date in a file's name at least; fewer are a number


class TailSpout(PositionSpout):
    """A spout of the lines that are appended to a file; see the module. The first task reads, others rest.

    A line is emitted when its end is there. A file that was renamed or removed is read until there is something in the new
    one under its name, which is read from its beginning; if it was rotated more than once since, those between come first.
    They are known by a number or date in their names (``app.log.1``, ``app.log-20260131``, ``app-2026-01-31.log``), and their
    order by when they were written last, then by that number or date. What was packed meanwhile (``app.log.2.gz``) is reported as lost.

    A file whose last bytes are not those that were read was truncated, and is read from its beginning. If it was copied before
    (logrotate's ``copytruncate``), the rest of the copy comes first.

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
        truncated = False
        for path in self._candidates():
            found = _found(path)
            if found is not None and found.st_ino == position["inode"]:
                if self._opened(path, position):
                    return
                truncated = True
        if truncated and self._copy_opened(position):
            return
        self.report_error(
            f"{self.path} was rotated while nobody read it, and the old file is not in its folder any more: what came behind byte "
            f"{position['byte']} of it is lost; the new file is read from its beginning"
        )

    def close(self) -> None:
        file, self._file = getattr(self, "_file", None), None
        if file is not None:
            file.close()

    def _runner_gave_up(self) -> None:
        self.close()  # as the end of a process would

    # ---- inside ----

    def _begin(self) -> bool:
        """Open the file under the name; return whether it is there."""
        if self.clock() < self._look_at:
            return False
        self._look_at = self.clock() + _LOOK_SECS
        from_end = self.from_end and not self._begun
        self._begun = True
        try:
            file = open(self.path, "rb")  # noqa: SIM115 - it is closed in close
        except FileNotFoundError:
            self._idle = True
            return False
        self._read_from_beginning(file)
        if from_end:
            assert self._file is not None
            self._at = self._file.seek(0, 2)
            self._file.seek(max(0, self._at - _KNOWN_BY))
            self._last = self._file.read(min(self._at, _KNOWN_BY))
        return True

    def _read_from_beginning(self, file: BinaryIO) -> None:
        self._file, self._at, self._partial, self._last = file, 0, b"", b""

    def _is_another(self) -> bool:
        """Return whether the bytes before the place are others than those that were read."""
        assert self._file is not None
        known = self._last + self._partial
        place = self._at + len(self._partial) - len(known)
        return os.pread(self._file.fileno(), len(known), place) != known

    def _begin_again(self) -> None:
        assert self._file is not None
        size = os.fstat(self._file.fileno()).st_size
        truncated, position = self._file, self.position()
        if self._copy_opened(position):
            truncated.close()
            self.log(f"{self.path} was truncated to {size} bytes; the rest of its copy is read first")
            return
        self.log(
            f"{self.path} was truncated to {size} bytes, and is read from its beginning; what came behind byte {self._at} before "
            "that, if it was not read yet, is lost",
            "warn",
        )
        self._file.seek(0, os.SEEK_END)  # drops the buffer, within which a seek to the beginning would stay
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
        self._read_from_beginning(following)
        self._look_at = 0.0

    def _following(self, mine: os.stat_result) -> BinaryIO | None:
        """Open what is to be read behind this file: one that was rotated later, or else the new one under the name.

        None: it is not rotated, or nothing was written to another one yet. A program that is told of a rotation behind it
        writes to the old file until then. Also None, until the next look, if files were renamed meanwhile: what has the
        name by now may come later than what had it.
        """
        named = _found(self.path)
        if named is not None and os.path.samestat(named, mine):
            return None
        after = mine.st_mtime_ns, float("inf")
        later = []
        for path in self._rotated():
            found = _found(path)
            if found is None:
                continue
            if os.path.samestat(found, mine):
                after = mine.st_mtime_ns, _turn(path)
            else:
                later.append(((found.st_mtime_ns, _turn(path)), path, found))
        later = [each for each in later if each[0] > after]
        until: tuple[float, float] = (float("inf"), 0)
        if later:
            until, path, found = min(later, key=lambda each: each[0])
        elif named is not None and named.st_size:
            path, found = self.path, named
        else:
            return None
        try:
            file = open(path, "rb")  # noqa: SIM115 - it is closed in close
        except FileNotFoundError:
            return None
        if not os.path.samestat(os.fstat(file.fileno()), found):
            file.close()
            return None
        self._tell_packed(after, until)
        return file

    def _tell_packed(self, after: tuple[float, float], until: tuple[float, float]) -> None:
        """Report files that were rotated between two that are read, and packed before they could be."""
        packed = []
        for path in self._rotated(_PACKED):
            found = _found(path)
            if found is not None and after < (found.st_mtime_ns, _turn(path)) < until:
                packed.append(os.path.basename(path))
        if packed:
            self.report_error(
                f"{', '.join(packed)} beside {self.path} {'was' if len(packed) == 1 else 'were'} rotated and packed before any of it was "
                "read: these lines are left out. Pack later (logrotate's delaycompress, and a longer rotate), and read what is packed "
                "with a FileSpout"
            )

    def _rotated(self, suffix: str = "") -> list[str]:
        """Return the files that rotation has made of it, by their names. ``suffix``: a pattern of what follows these."""
        name, end = os.path.splitext(os.path.basename(self.path))
        rotated = re.compile(
            rf"({re.escape(name + end)}[-._][-\d_.:T]*\d|{re.escape(name)}[-._]\d{{4}}-?\d\d-?\d\d[-\d_.:T]*{re.escape(end)}){suffix}"
        )
        return [path for path in self._candidates() if rotated.fullmatch(os.path.basename(path))]

    def _candidates(self) -> list[str]:
        """Return the file, and those in its folder whose names begin with its own: what rotation makes of it."""
        folder, name = os.path.split(self.path)
        stem = os.path.splitext(name)[0]
        try:
            others = [os.path.join(folder, each) for each in sorted(os.listdir(folder)) if each.startswith(stem)]
        except FileNotFoundError:
            others = []
        return [self.path, *(each for each in others if each != self.path)]

    def _copy_opened(self, position: Any) -> bool:
        """Open the newest copy that was made of the file before it was truncated, at a position; return whether there is one."""
        if not position["length"]:
            return False  # nothing by which it would be known
        copies = [
            (found.st_mtime_ns, _turn(path), path) for path in self._rotated() if (found := _found(path)) is not None
        ]
        return any(self._opened(path, position) for *_, path in sorted(copies, reverse=True))

    def _opened(self, path: str, position: Any) -> bool:
        """Open a file if it has what was read up to a position, and go there."""
        try:
            file = open(path, "rb")  # noqa: SIM115 - it is closed in close
        except FileNotFoundError:
            return False
        byte, length = position["byte"], position["length"]
        if os.fstat(file.fileno()).st_size >= byte:
            file.seek(byte - length)
            last = file.read(length)
            if crc32(last) == position["crc"]:
                self._file, self._at, self._last, self._partial = file, byte, last, b""
                return True
        file.close()
        return False


def _turn(path: str) -> int:
    """Return a number that is larger for the later one of two rotated files that were written at the same time."""
    digits = re.sub(r"\D", "", os.path.basename(path))
    return int(digits) if len(digits) >= _DATE_DIGITS else -int(digits)  # app.log.1 is later than app.log.2


def _found(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None

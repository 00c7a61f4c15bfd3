"""A file that grows, followed as ``tail -F`` does.

Guarantee: **at least once** while the file is there. A task that is started again goes on from its position, where the
conf has ``multilang.positions`` or alignment is exact; if the file was rotated meanwhile, it first reads the rest of the old
one, which it looks for in the same folder, under any name. What is removed before it was read is lost, and reported if that
can be seen.
On Storm and the embedded cluster; it has no end, so not in a Spark job.
"""

from __future__ import annotations

import errno
import os
import re
from typing import NamedTuple
from zlib import crc32

from multilang.component.errors import ConfigError
from multilang.connectors.formats import check_encoding
from multilang.connectors.rotation import PACKED, found_at, like, looks_rotated, open_file, order_of, usual
from multilang.connectors.urls import is_url, located
from multilang.state.position_spout import PositionSpout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from multilang.component.context import Context
    from multilang.connectors.rotation import Order

_LOOK_SECS = 0.2  # between two looks at the file, when all of it is read
_KNOWN_BY = 1024  # bytes before the position, by which a file is known again
_LINES = 64  # that one next_tuple emits at most
_PIECE = 1 << 20  # bytes of one read
_LAST = float("inf")


class TailSpout(PositionSpout):
    """A spout of the lines that are appended to a file; see the module. The first task reads, others rest.

    A line is emitted when its end is there. A file that was renamed or removed is read until there is something in the new
    one under its name, which is read from its beginning; if it was rotated more than once since, those between come first.
    The file that was read is known again by its inode and content. It shows how rotation names files: those between have the
    same name but for numbers and dates. Their order is that in which they were written last. If the file is gone, and it was
    never seen rotated, those between are known by usual names (``app.log.1``, ``app.log-20260131``, ``app-2026-01-31.log``).
    What was packed meanwhile (``app.log.2.gz``), and what may be rotated but has another name, is reported.

    A file whose last bytes are not those that were read was truncated, and is read from its beginning. If it was copied before
    (logrotate's ``copytruncate``), the rest of the copy comes first. NULs at the beginning of a line are left out: a program
    that does not append leaves a hole where the text was that was truncated.

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
        self._base = os.path.basename(self.path)
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
        self._named()

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self._reads = context.task_index == 0
        self._file: BinaryIO | None = None
        self._at = 0
        self._partial = b""  # what is behind the last whole line
        self._last = b""  # the end of what was read
        self._look_at = 0.0
        self._nuls_at = 0.0  # when to look behind NULs next
        self._idle = not self._reads
        self._begun = False
        self._rotated_to: str | None = None  # a name that rotation gave the file
        self._after: Order | None = (
            None  # where no file is open: rotated files that come later are read before the one under the name
        )

    def next_tuple(self) -> None:
        if not self._reads:
            return
        if self._file is None and not self._begin():
            return
        if self._is_another():
            self._begin_again()
        if self.clock() < self._nuls_at:
            return
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
            return {"inode": None, "written": self._after and self._after[0], "rotated_to": self._rotated_to}
        found = os.fstat(self._file.fileno())
        return {
            "inode": found.st_ino,
            "byte": self._at,
            "length": len(self._last),
            "crc": crc32(self._last),
            "written": found.st_mtime_ns,
            "rotated_to": self._rotated_to,
        }

    def seek(self, position: Any) -> None:
        self.close()
        self._begun = True
        self._rotated_to, written = position.get("rotated_to"), position.get("written")
        self._after = None if written is None else (written, 0, 0)
        if position["inode"] is None:
            return
        truncated = False
        for file in self._files():
            if file.found.st_ino == position["inode"]:
                if self._opened(file.path, position):
                    return
                truncated = True
        if truncated and self._copy_opened(position):
            return
        self.report_error(
            f"{self.path} was rotated while nobody read it, and the old file is not in its folder any more: what came behind byte "
            f"{position['byte']} of it is lost; what was rotated later and is there is read, and then the new file from its beginning"
        )

    def close(self) -> None:
        file, self._file = getattr(self, "_file", None), None
        if file is not None:
            file.close()

    def _runner_gave_up(self) -> None:
        self.close()  # as the end of a process would

    # ---- inside ----

    def _begin(self) -> bool:
        """Open the file under the name, or what was rotated since the spout looked for it; return whether it is there."""
        if self.clock() < self._look_at:
            return False
        self._look_at = self.clock() + _LOOK_SECS
        from_end = self.from_end and not self._begun
        self._begun = True
        file = open_file(self.path) if self._after is None and self._named() else self._following(None)
        if file is None:
            self._idle = True
            folder = os.path.dirname(self.path)
            if self._after is None and os.path.isdir(folder):
                self._after = os.stat(folder).st_mtime_ns, _LAST, 0  # what is written later was this file
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
        self._read_anew(0)
        self._at, self._partial, self._last = 0, b"", b""

    def _read_anew(self, place: int) -> None:
        assert self._file is not None
        self._file.seek(0, os.SEEK_END)  # drops the buffer, within which a seek would stay
        self._file.seek(place)

    def _line(self) -> bytes | None:
        assert self._file is not None
        while True:
            piece = self._file.readline(_PIECE)
            if piece.startswith(b"\0") and not self._partial:
                if not self._is_over_nuls():
                    return None
                continue
            self._partial += piece
            if piece.endswith(b"\n"):
                return self._taken()
            if len(piece) < _PIECE:
                return None

    def _is_over_nuls(self) -> bool:
        """Go to what is behind the NULs at the beginning of a line; return whether there is something yet."""
        assert self._file is not None
        place = self._at
        while True:
            try:
                place = self._file.seek(place, os.SEEK_DATA)  # over a hole without reading it
            except OSError as problem:
                if problem.errno != errno.ENXIO:
                    raise
                piece = b""
            else:
                piece = self._file.read(_PIECE)
            rest = piece.lstrip(b"\0")
            place += len(piece) - len(rest)
            if rest:
                break
            if not piece:
                self._nuls_at = self.clock() + _LOOK_SECS
                self._read_anew(self._at)  # a program may have reserved the place, and write there
                return False
        self.log(
            f"bytes {self._at} to {place} of {self.path} are NULs, and are left out: a program that does not append leaves them when "
            "the file is truncated",
            "warn",
        )
        self._last = (self._last + bytes(min(place - self._at, _KNOWN_BY)))[-_KNOWN_BY:]
        self._at = self._file.seek(place)
        return True

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

    def _following(self, mine: os.stat_result | None) -> BinaryIO | None:
        """Open what is to be read behind this file: one that was rotated later, or else the new one under the name.

        None: it is not rotated, or nothing was written to another one yet. A program that is told of a rotation behind it
        writes to the old file until then. Also None, until the next look, if files were renamed meanwhile: what has the
        name by now may come later than what had it.
        """
        following = self._next(mine)
        file = following and open_file(following.file.path)
        if following is None or file is None:
            return None
        inode = os.fstat(file.fileno()).st_ino
        again = self._next(mine)
        if again is not None and (again.file.path, again.file.found.st_ino) == (following.file.path, inode):
            self._tell_left_out(following)
            return file
        file.close()
        return None

    def _next(self, mine: os.stat_result | None) -> _Next | None:
        """Find what is to be read behind this file, or behind the place in time where it was lost."""
        named = self._named()
        if mine is not None and named is not None and os.path.samestat(named, mine):
            return None
        files = self._files()
        after, is_gone = self._after or (_LAST, 0, 0), False
        if mine is not None:
            same = [each for each in files if each.path != self.path and os.path.samestat(each.found, mine)]
            old = max(same, key=lambda each: looks_rotated(self._base, each.name), default=None)
            after, is_gone = (mine.st_mtime_ns, _LAST, 0) if old is None else old.order, old is None
            self._rotated_to = self._rotated_to if old is None else old.name
        rotated = re.compile(self._rotated())
        others = [each for each in files if each.order > after and not (named and os.path.samestat(each.found, named))]
        later = min(
            (each for each in others if rotated.fullmatch(each.name)), key=lambda each: each.order, default=None
        )
        if later is not None:
            return _Next(later, [each.name for each in others if each.order < later.order], is_gone)
        if named is not None and named.st_size:
            return _Next(_File(self.path, named), [each.name for each in others], is_gone)
        return None

    def _tell_left_out(self, following: _Next) -> None:
        """Report files that were rotated between two that are read, and are not read."""
        if following.is_gone:
            self.log(
                f"{self.path} was removed, or moved out of its folder; all of it is read, and {following.file.name} comes next. What came "
                "between, if it was rotated more than once, is left out",
                "warn",
            )
        packed = [name for name in following.between if re.fullmatch(f"(?:{self._rotated()}){PACKED}", name)]
        if packed:
            self.report_error(
                f"{', '.join(packed)} beside {self.path} {'was' if len(packed) == 1 else 'were'} rotated and packed before any of it was "
                "read: these lines are left out. Pack later (logrotate's delaycompress, and a longer rotate), and read what is packed "
                "with a FileSpout"
            )
        if self._rotated_to is not None:
            return
        others = [name for name in following.between if name not in packed and looks_rotated(self._base, name)]
        if others:
            self.report_error(
                f"{', '.join(others)} beside {self.path} {'was' if len(others) == 1 else 'were'} written since, and may be rotated from "
                "it: these lines are left out, since nothing shows that they are its own. Read them with a FileSpout"
            )

    def _rotated(self) -> str:
        """Return a pattern of the names that rotation gives the file: as far as is known, or else the usual ones."""
        patterns = [usual(self._base)] + ([] if self._rotated_to is None else [like(self._base, self._rotated_to)])
        return "|".join(patterns)

    def _named(self) -> os.stat_result | None:
        """Return what is known of the file under the name; None if there is none. Raises ConfigError for what can't be followed."""
        if os.path.isdir(self.path):
            raise ConfigError(f"{self.path} is a folder; name the file in it that is to be followed")
        found = found_at(self.path)
        if found is None and os.path.exists(self.path):
            raise ConfigError(f"{self.path} is a pipe, a device or the like; write it to a file, and name that")
        return found

    def _files(self) -> list[_File]:
        """Return the files that are in the folder of the file, or, of a link, in that of the file which it leads to."""
        files = []
        for folder in {os.path.dirname(self.path), os.path.dirname(os.path.realpath(self.path))}:
            try:
                with os.scandir(folder) as entries:
                    paths = sorted(each.path for each in entries if not each.is_symlink())
            except FileNotFoundError:
                continue
            files += [_File(path, found) for path in paths if (found := found_at(path))]
        return files

    def _copy_opened(self, position: Any) -> bool:
        """Open the newest copy that was made of the file before it was truncated, at a position; return whether there is one."""
        if not position["length"]:
            return False  # nothing by which it would be known
        named = self._named()
        copies = [
            file
            for file in self._files()
            if (position["length"] == _KNOWN_BY or looks_rotated(self._base, file.name))
            and os.access(file.path, os.R_OK)
            and not (named and os.path.samestat(file.found, named))
        ]
        return any(
            self._opened(each.path, position) for each in sorted(copies, key=lambda each: each.order, reverse=True)
        )

    def _opened(self, path: str, position: Any) -> bool:
        """Open a file if it has what was read up to a position, and go there."""
        file = open_file(path)
        if file is None:
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


class _File(NamedTuple):
    """A file in the folder.

    Attributes:
        path: Its path.
        found: What is known of it.
    """

    path: str
    found: os.stat_result

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    @property
    def order(self) -> Order:
        return order_of(self.name, self.found)


class _Next(NamedTuple):
    """The file that is read behind another one.

    Attributes:
        file: The next file.
        between: The names of all files that were written between the two.
        is_gone: Whether the file that was read is not in the folder any more.
    """

    file: _File
    between: list[str]
    is_gone: bool

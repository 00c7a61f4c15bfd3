"""A file that grows, followed as ``tail -F`` does.

Guarantee: **at least once** while the file is there. A restarted task resumes from its position, where the
conf has ``multilang.store`` or alignment is exact; if the file was rotated meanwhile, it first reads the rest of the old
one, which it looks for in the same folder, under any name. What a program writes to the last five rotated files, which it still has
open, is read, too. What is removed before it was read is lost, and reported if that can be seen.
On Storm and the embedded cluster; it has no end, so not in a Spark job.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import NamedTuple

from multilang.component.errors import ConfigError, ConnectorError, UnreadableRow
from multilang.connectors.followed import KNOWN_BY, LOOK_SECS, Followed
from multilang.connectors.formats import check_encoding
from multilang.connectors.rotation import PACKED, found_at, like, looks_rotated, open_file, order_of, usual
from multilang.connectors.unreadable import RowSpout, readable
from multilang.connectors.urls import is_url, located

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from multilang.component.context import Context
    from multilang.connectors.rotation import Order

_LINES = 64  # that one next_tuple emits at most
_MOST_OLD = 5  # rotated files that stay open, since a program may still write to them
_WHOLE_SECS = 5.0  # in which nothing is written to a rotated file, before the text behind its last line is one
_CLOSE_SECS = 60.0  # the same, before one that was removed, or is one too many, is closed
_LAST = float("inf")


class TailSpout(RowSpout):
    """A spout of the lines that are appended to a file; see the module. The first task reads, others rest.

    A line is emitted when its end is there. A file that was renamed or removed is read until there is something in the new
    one under its name, which is read from its beginning; if it was rotated more than once since, those between come first.
    The file that was read is known again by its inode and content, also in another folder, where Linux shows into which it was moved. It shows how rotation names files: those between have the
    same name but for numbers and dates. Their order is that in which they were written last. If the file is missing, and it was
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
        on_unreadable: What happens to a line that can't be read: ``"fail"``, ``"skip"`` or ``"stream"``, see
            ``multilang.connectors.unreadable``. With ``errors="replace"`` there is none.
    """

    needs_positions = False

    def __init__(
        self,
        path: str | os.PathLike[str],
        field: str = "line",
        from_end: bool = False,
        encoding: str = "utf-8",
        errors: str = "replace",
        on_unreadable: str = "fail",
    ) -> None:
        super().__init__(on_unreadable)
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
        self._now: Followed | None = None
        # Those that were read before, the oldest first: a program may still have them open.
        self._old: list[Followed] = []
        self._look_at = 0.0
        self._look_at_old = 0.0
        self._idle = not self._reads
        self._begun = False
        self._rotated_to: str | None = None  # a name that rotation gave the file
        self._moved_to: str | None = None  # the folder in which it is now, wherever rotation moved it
        self._written: float = _LAST  # when the file under the name was written, as it was seen there last
        self._after: Order | None = (
            None  # where no file is open: rotated files that come later are read before the one under the name
        )

    def next_tuple(self) -> None:
        if not self._reads or self.stands_still():
            return
        if self._send_late() or (self._now is None and not self._begin()):
            return
        assert self._now is not None
        if self._now.is_another():
            self._begin_again()
        for _ in range(_LINES):
            line = self._now.line()
            if line is None:
                self._at_end()
                return
            self._idle = False
            self._send(line, self._now)
            if self._stands_at is not None:
                return

    def exhausted(self) -> bool | None:
        return None if self._idle else False

    def position(self) -> Any:
        rotation = {
            "rotated_to": self._rotated_to,
            "moved_to": self._moved_to,
            "old": [each.position() for each in self._old],
        }
        if self._now is None:
            return {"inode": None, "written": self._after and self._after[0], **rotation}
        written = self._now.found().st_mtime_ns if self._written == _LAST else self._written
        return {**self._now.position(), "written": written, **rotation}

    def seek(self, position: Any) -> None:
        self._close_files()
        self._begun = True
        self._rotated_to, written = position.get("rotated_to"), position.get("written")
        self._moved_to = position.get("moved_to")
        self._after, self._written = (None, _LAST) if written is None else ((written, 0, 0), written)
        files = self._files()
        for each in position.get("old", ()):
            old = self._found(each, files)
            if old is None:
                self.log(
                    f"a file that {self.path} was rotated to is missing, after {each['byte']} bytes of it were read: what was written behind "
                    "these, if a program still had it open, is left out",
                    "warn",
                )
            else:
                self._old.append(old)
        if position["inode"] is None:
            return
        self._now = self._found(position, files)
        if self._now is None and any(file.found.st_ino == position["inode"] for file in files):
            self._now = self._copy(position)  # it was truncated
        if self._now is None:
            self.report_error(
                f"{self.path} was rotated while nobody read it, and the old file is not in its folder any more: what came behind byte "
                f"{position['byte']} of it is lost; what was rotated later and is there is read, and then the new file from its beginning"
            )

    def close(self) -> None:
        super().close()
        self._close_files()

    def _close_files(self) -> None:
        followed = [*getattr(self, "_old", ()), getattr(self, "_now", None)]
        self._now, self._old = None, []
        for each in followed:
            if each is not None:
                each.file.close()

    def _runner_gave_up(self) -> None:
        self._close_files()  # as the end of a process would

    # ---- inside ----

    def _begin(self) -> bool:
        """Open the file under the name, or what was rotated since the spout looked for it; return whether it is there."""
        if self.clock() < self._look_at:
            return False
        self._look_at = self.clock() + LOOK_SECS
        from_end = self.from_end and not self._begun
        self._begun = True
        file = open_file(self.path) if self._after is None and self._named() else self._following(None)
        if file is None:
            self._idle = True
            folder = os.path.dirname(self.path)
            if self._after is None and os.path.isdir(folder):
                self._after = os.stat(folder).st_mtime_ns, _LAST, 0  # what is written later was this file
            return False
        self._follow(file)
        if from_end:
            assert self._now is not None
            self._now.go_to_end()
        return True

    def _follow(self, file: BinaryIO) -> None:
        """Read a file from its beginning."""
        self._now = Followed(file, self)
        found, named = self._now.found(), self._named()
        if named is not None and os.path.samestat(named, found):
            self._written = found.st_mtime_ns

    def _begin_again(self) -> None:
        assert self._now is not None
        size = self._now.found().st_size
        copy = self._copy(self._now.position())
        if copy is not None:
            self._now.file.close()
            self._now = copy
            self.log(f"{self.path} was truncated to {size} bytes; the rest of its copy is read first")
            return
        self.log(
            f"{self.path} was truncated to {size} bytes, and is read from its beginning; what came behind byte {self._now.at} before "
            "that, if it was not read yet, is lost",
            "warn",
        )
        self._now.begin_again()

    def _send(self, line: bytes, of: Followed) -> None:
        def wrong(why: str) -> ConnectorError:
            number = "" if of.number is None else f"line {of.number} "
            place = f"{number}(byte {of.at - len(line)}){'' if why.startswith(',') else ' '}{why}"
            return ConnectorError(f"{self.path}: {place}", UnreadableRow(self.path, of.number, readable(line)))

        try:
            try:
                text = line.removesuffix(b"\n").removesuffix(b"\r").decode(self.encoding, self.errors)
            except UnicodeDecodeError as problem:
                raise wrong(
                    f"is no {self.encoding} ({problem.reason}); name its encoding, or take errors='replace'"
                ) from problem
            self.emit_row([text.removeprefix("\ufeff") if of.at == len(line) else text], wrong)
        except ConnectorError as problem:
            self.leave_out(problem, of.step_back)

    def _send_late(self) -> bool:
        """Emit what was written to the files that were read before; return whether there may be more."""
        if not self._old or self.clock() < self._look_at_old:
            return False
        left = _LINES
        for old in [*self._old]:
            while left and (line := old.line()) is not None:
                self._send(line, old)
                if self._stands_at is not None:
                    return True
                left -= 1
            if not left:
                self._idle = False
                return True
            found = old.found()
            if old.partial and old.is_quiet(_WHOLE_SECS):
                self._send(old.rest(), old)
                if self._stands_at is not None:
                    return True
            # One that is written to may not be forgotten: it would be taken for one that was rotated later.
            is_surplus = len(self._old) > _MOST_OLD and found.st_mtime_ns <= self._written
            if found.st_size < old.at or ((is_surplus or not found.st_nlink) and old.is_quiet(_CLOSE_SECS)):
                self._old.remove(old)
                old.file.close()
        self._look_at_old = self.clock() + LOOK_SECS
        return False

    def _at_end(self) -> None:
        """See whether the file was replaced."""
        self._idle = not any(each.partial for each in self._old)  # which may become whole lines
        if self.clock() < self._look_at:
            return
        self._look_at = self.clock() + LOOK_SECS
        assert self._now is not None
        following = self._following(self._now.found())
        if following is None:
            return
        self._idle = False
        self._old.append(self._now)
        self._follow(following)
        self._look_at = self._look_at_old = 0.0

    def _following(self, mine: os.stat_result | None) -> BinaryIO | None:
        """Open what is to be read behind this file: one that was rotated later, or else the new one under the name.

        None: it is not rotated, or nothing was written to another one yet. A program that gets the signal after a rotation
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
            self._written = mine.st_mtime_ns
            return None
        files = self._files()
        after, is_missing = self._after or (_LAST, 0, 0), False
        if mine is not None:
            same = [each for each in files if each.path != self.path and os.path.samestat(each.found, mine)]
            old = max(same, key=lambda each: looks_rotated(self._base, each.name), default=None)
            after, is_missing = (mine.st_mtime_ns, _LAST, 0) if old is None else old.order, old is None
            self._rotated_to = self._rotated_to if old is None else old.name
            if after[0] > self._written:  # it was written to when it was rotated already, as those behind it may be
                after = self._written, 0, 0
        read = [*([] if mine is None else [mine]), *(each.found() for each in self._old)]
        known = [*read, *([] if named is None else [named])]
        rotated = re.compile(self._rotated())
        packed_until = max((each.st_mtime_ns for each in read), default=0)  # of what was read
        others = [
            each
            for each in files
            if each.order > after
            and not any(os.path.samestat(each.found, one) for one in known)
            and not (each.found.st_mtime_ns <= packed_until and re.search(f"{PACKED}$", each.name))
        ]
        later = min(
            (each for each in others if rotated.fullmatch(each.name)), key=lambda each: each.order, default=None
        )
        if later is not None:
            return _Next(later, [each.name for each in others if each.order < later.order], is_missing)
        if named is not None and named.st_size:
            return _Next(_File(self.path, named), [each.name for each in others], is_missing)
        return None

    def _tell_left_out(self, following: _Next) -> None:
        """Report files that were rotated between two that are read, and are not read."""
        if following.is_missing and self._now is not None:
            self.log(
                f"{self.path} was removed, or moved to where it can't be found, after {self._now.at} bytes of it were read; {following.file.name} "
                "comes next, from its first byte. What had the name between the two, if it was rotated more than once, is left out",
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
        folders = {os.path.dirname(self.path), os.path.dirname(os.path.realpath(self.path))}
        if self._now is not None:
            with suppress(OSError):  # of systems without it
                self._moved_to = os.path.dirname(os.readlink(f"/proc/self/fd/{self._now.file.fileno()}"))
        if self._moved_to is not None and os.access(self._moved_to, os.R_OK | os.X_OK):
            folders.add(self._moved_to)
        for folder in folders:
            try:
                with os.scandir(folder) as entries:
                    paths = sorted(each.path for each in entries if not each.is_symlink())
            except FileNotFoundError:
                continue
            files += [_File(path, found) for path in paths if (found := found_at(path))]
        return files

    def _copy(self, position: Any) -> Followed | None:
        """Open the newest copy that was made of the file before it was truncated, at a position; None if there is none."""
        if not position["length"]:
            return None  # nothing by which it would be known
        named = self._named()
        copies = [
            file
            for file in self._files()
            if (position["length"] == KNOWN_BY or looks_rotated(self._base, file.name))
            and os.access(file.path, os.R_OK)
            and not (named and os.path.samestat(file.found, named))
        ]
        opened = (
            self._opened(each.path, position) for each in sorted(copies, key=lambda each: each.order, reverse=True)
        )
        return next(filter(None, opened), None)

    def _found(self, position: Any, files: list[_File]) -> Followed | None:
        """Open the file of a position at its place; None if it is not there, or was truncated."""
        same = [file for file in files if file.found.st_ino == position["inode"]]
        if not position["length"]:  # nothing was read: it may be any file that got the inode of a removed one
            same = [file for file in same if file.name == self._base or looks_rotated(self._base, file.name)]
            same = [file for file in same if not re.search(f"{PACKED}$", file.name)]
        return next(filter(None, (self._opened(file.path, position) for file in same)), None)

    def _opened(self, path: str, position: Any) -> Followed | None:
        """Open a file if it has what was read up to a position, and go there."""
        file = open_file(path)
        if file is None:
            return None
        followed = Followed(file, self)
        if followed.go_to(position):
            return followed
        file.close()
        return None


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
        is_missing: Whether the file that was read is not in the folder any more.
    """

    file: _File
    between: list[str]
    is_missing: bool

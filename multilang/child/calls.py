"""Calls of user code that take long are named: the method, for how long, and the line of the user's code."""

from __future__ import annotations

import os
import sys

from multilang.settings import PROCESS_TIMEOUT, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType
    from typing import Any

    from multilang.child.work import Work

_LONG_SECS = 10.0  # after which a call is named; again each time that the time has doubled
_PART = 10  # of the time that a call may take: the part after which it is named, if that is shorter
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_ENGINES = tuple(os.path.join(_OURS, name) + os.sep for name in ("child", "local"))
_PYTHONS = os.path.dirname(os.__file__) + os.sep
_INSTALLED = f"{os.sep}site-packages{os.sep}"


def long_secs(conf: Mapping[str, Any]) -> float:
    """Return the seconds after which a call takes long: ten, or a tenth of those that it may take."""
    limit = float(value(conf, PROCESS_TIMEOUT))
    return min(limit / _PART, _LONG_SECS) if limit else _LONG_SECS


class LongCalls:
    """Names the calls that take long, and says when they end.

    Args:
        work: The work of user code, which is looked at before ``look``.
        thread: Returns the thread that runs user code.
        log: Takes a line, and what the work is on.
        secs: The seconds after which a call is named.

    Attributes:
        call: The method that takes long, the instant since which, and the line of code; None: there is none.
    """

    def __init__(self, work: Work, thread: Callable[[], int], log: Callable[[str, object], None], secs: float) -> None:
        self.call: tuple[str, float, str | None] | None = None
        self._work = work
        self._thread = thread
        self._log = log
        self._on: object = None
        self._secs = self._due = secs

    def look(self, now: float) -> bool:
        """Name what is due; return whether ``call`` has changed."""
        work, call = self._work, self.call
        if call is not None and (work.seen is not self._on or work.since != call[1]):
            method, since, _ = call
            on, self.call, self._on, self._due = self._on, None, None, self._secs
            self._log(f"is out of {method} after {now - since:.0f} s", on)
            return True
        secs = now - work.since
        if work.seen is None or secs < self._due:
            return False
        self._due = 2 * secs
        self._on = work.seen
        self.call = method, _, at = work.method(work.seen), work.since, line_of_user(self._thread())
        where = "" if at is None else f" ({at})"
        self._log(f"has been in {method} for {secs:.0f} s{where}", self._on)
        return True


def line_of_user(thread: int) -> str | None:
    """Return the innermost line of the user's code that a thread is in, such as ``fetch.py:12 in process``."""
    frame = sys._current_frames().get(thread)
    by_rank: dict[int, FrameType] = {}  # the innermost frame of each: the user's, of what is installed, any other
    while frame is not None and 0 not in by_rank:
        file = frame.f_code.co_filename
        if file.startswith(_ENGINES):
            break
        if not file.startswith("<frozen"):
            rank = 1 if _INSTALLED in file else 2 if file.startswith((_OURS, _PYTHONS)) else 0
            by_rank.setdefault(rank, frame)
        frame = frame.f_back
    if not by_rank:
        return None
    found = by_rank[min(by_rank)]
    file = found.f_code.co_filename
    folders = [each for each in map(str, sys.path) if each and file.startswith(os.path.join(each, ""))]
    if folders:
        file = file[len(os.path.join(max(folders, key=len), "")) :]
    return f"{file}:{found.f_lineno} in {found.f_code.co_name}"

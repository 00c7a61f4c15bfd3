"""Repeated reports: the first is passed on in full, the following ones as a count, with growing pauses between."""

from __future__ import annotations

from _thread import allocate_lock
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any

FIRST_PAUSE_SECS = 1.0
LONGEST_PAUSE_SECS = 60.0
QUIET_SECS = 600.0  # seconds after which a report is new again: by then, a log may have been rotated
_MAX_KINDS = 1000  # that are remembered; the oldest is removed first, after its count is passed on
_MAX_TEXTS = 3  # texts passed on in full for exceptions of one type from one place: a text may name each tuple's values
_DIGITS = dict.fromkeys(range(ord("0"), ord("9") + 1))


class Repeats:
    """Passes new reports on to ``pass_on(about, text)``, and repeated ones as a count.

    The count is passed on with the first repetition after a pause, which doubles each time; ``report_due`` needs no
    new repetition for it, and ``report_rest`` no pause. So nothing is lost if ``report_rest`` is called at the end. Any
    thread may call.

    ``about`` is what ``pass_on`` needs beside the text, such as the task.
    """

    def __init__(self, pass_on: Callable[[Any, str], None], now: Callable[[], float] = monotonic) -> None:
        self._pass_on = pass_on
        self._now = now
        self._kinds: dict[Hashable, _Kind] = {}
        self._lock = allocate_lock()
        self.unreported = 0
        """The number of reports that were counted and not passed on yet."""

    def report(self, about: Any, text: str, who: Hashable = None, kind: Hashable = None) -> None:
        """Pass ``text`` on, or count it if ``who`` reported the same kind before (``kind``, or ``kind_of`` the text)."""
        now = self._now()
        key = (who, kind_of(text) if kind is None else kind)
        text_kind = "" if kind is not None else text[text.rfind("\n", 0, -1) + 1 :].translate(_DIGITS)
        with self._lock:
            known = self._kinds.get(key)
            if known is not None and now - known.seen > QUIET_SECS:
                self._count(known, now)
                known = None
            if known is None:
                self._kinds.pop(key, None)
                if len(self._kinds) >= _MAX_KINDS:
                    self._count(self._kinds.pop(next(iter(self._kinds))), now)
                known = self._kinds[key] = _Kind(now)
            known.seen = now
            if text_kind not in known.texts and len(known.texts) < _MAX_TEXTS:
                known.texts.add(text_kind)
                known.reported += 1
                self._pass_on(about, text)
                return
            known.last = about, text.partition("\n")[0]
            known.unreported += 1
            self.unreported += 1
            if now >= known.due:
                self._count(known, now)

    def report_due(self) -> None:
        """Pass on the counts whose pause is over."""
        if self.unreported:
            now = self._now()
            with self._lock:
                for known in list(self._kinds.values()):
                    if now >= known.due:
                        self._count(known, now)

    def report_rest(self) -> None:
        """Pass on all counts, at the end."""
        if self.unreported:
            with self._lock:
                for known in self._kinds.values():
                    self._count(known, self._now())

    def _count(self, known: _Kind, now: float) -> None:
        times = known.unreported
        if not times:
            return
        about, head = known.last
        again = "once more" if times == 1 else f"{times:,} times more"
        known.reported += times
        known.unreported = 0
        self.unreported -= times
        self._pass_on(
            about, f"{head} (as before, {again} in {now - known.since:.1f} s; {known.reported:,} times in all)"
        )
        known.since = now
        known.due = now + known.pause
        known.pause = min(2 * known.pause, LONGEST_PAUSE_SECS)


class _Kind:
    """One kind of report, with the number of reports that were passed on, and of those that were not."""

    __slots__ = ("due", "last", "pause", "reported", "seen", "since", "texts", "unreported")

    def __init__(self, now: float) -> None:
        self.since = self.seen = now
        self.due = now + FIRST_PAUSE_SECS
        self.pause = 2 * FIRST_PAUSE_SECS
        self.reported = 0
        self.unreported = 0
        self.last: tuple[Any, str] = (None, "")
        self.texts: set[str] = set()


def kind_of(text: str) -> str:
    """Return what a report and its repetitions share: the exception's type with its stack or place, or else all text.

    The tuple, and the exception's own text, differ each time.
    """
    head, _, rest = text.partition("\n")
    error, ours, where = head.partition(" in component ")
    if not rest.startswith("Traceback"):
        if not ours or not error.rpartition(" ")[2].isidentifier():
            return text
        component, _, place = where.partition(" on tuple ")[0].partition(": ")[0].partition(") ")
        return f"{error} in {component} {place.translate(_DIGITS)}"
    lines = rest.splitlines()
    if not ours:  # logged by the user's own code
        error = lines[-1].partition(":")[0]
    return "\n".join([error, *(line for line in lines if line.startswith("  "))])

"""Watermarks: the event time of which no earlier tuple is expected any more."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

BEFORE_ALL = -(2**63)
"""The watermark before the first one."""

AFTER_ALL = 2**63 - 1
"""The watermark after the last tuple of an input that has an end."""

MOST_MS = 2**62
"""The bound of timestamps, so that the ends of their windows have 64 bits, too."""


class Source:
    """One task that sends tuples on one stream.

    Attributes:
        greatest: The greatest timestamp of its tuples; None before the first.
        since: The time of the clock, in milliseconds, since which it has been silent; known where a silent one becomes idle.
    """

    __slots__ = ("greatest", "since")

    def __init__(self, since: float, greatest: int | None = None) -> None:
        self.greatest = greatest
        self.since = since


class Watermarks:
    """The watermark of one task, generated from the timestamps of its tuples.

    The watermark is the least of the sources' greatest timestamps, less the lag. A source is a task with one of its
    streams. Until each source has sent something there is no watermark. With ``idle_ms``, a source that is silent for
    so long is left out until its next tuple; when all are silent, the watermark advances with the clock.

    Args:
        streams: The number of tasks that send, by (component, stream).
        lag_ms: The milliseconds by which tuples may be out of order.
        idle_ms: The milliseconds of silence after which a source is idle; None: sources are never idle.
        now: The time of the clock, in milliseconds.
        merged: Where input arrives in batches: the components of which all tasks count as one source.

    Attributes:
        current: The watermark; it never goes back.
    """

    def __init__(
        self,
        streams: Mapping[tuple[str, str], int],
        lag_ms: int = 0,
        idle_ms: int | None = None,
        now: float = 0.0,
        merged: Collection[str] | None = None,
    ) -> None:
        self.current = BEFORE_ALL
        self._lag_ms = lag_ms
        self._idle_ms = idle_ms
        self._sources: dict[tuple[str, str, int], Source] = {}
        self._in_batches = merged is not None
        self._merged = frozenset(merged or ())
        self._expected = {
            (component, stream): min(tasks, 1) if component in self._merged else tasks
            for (component, stream), tasks in streams.items()
        }
        self._unheard = sum(self._expected.values())
        self._began = now
        self._all_idle_since: float | None = None
        self._all_idle_from = BEFORE_ALL
        self._elsewhere: dict[tuple[str, str, int], int | None] = {}  # restored ones whose task is another component's

    def source(self, component: str, stream: str, task: int, now: float) -> Source:
        """Return a source, which is made at its first tuple."""
        key = (component, stream, 0 if component in self._merged else task)
        found = self._sources.get(key)
        if found is None:
            if not self._sources:
                self._began = now  # those that start later have the same time to send something
            found = self._sources[key] = Source(now)
            if self._expected.get((component, stream), 0) > 0:
                self._expected[component, stream] -= 1
                self._unheard -= 1
            else:
                self._replace(component, stream)
        return found

    def _replace(self, component: str, stream: str) -> None:
        """Remove a source from before a restart whose task has another id now: it would hold up the watermark forever."""
        for key, greatest in self._elsewhere.items():
            if key[:2] == (component, stream) and self._sources[key].greatest == greatest:
                del self._elsewhere[key], self._sources[key]
                return

    def advance(self, now: float) -> int:
        """Return the watermark at the clock's time ``now``, in milliseconds."""
        if self._waits(now):
            return self.current
        least = self._least(now)
        if least is not None:
            self._all_idle_since = None
            self.current = max(self.current, least - self._lag_ms)
            return self.current
        greatest = max(
            (source.greatest for source in self._sources.values() if source.greatest is not None), default=None
        )
        if greatest is not None:  # all of them are idle
            if self._all_idle_since is None:
                self._all_idle_since = max(source.since for source in self._sources.values())
                self._all_idle_from = greatest - self._lag_ms
            self.current = max(self.current, self._all_idle_from + int(now - self._all_idle_since))
        return self.current

    def _is_active(self, since: float, now: float) -> bool:
        """Return whether a silence that began at ``since`` is too short yet for a source to be idle."""
        return self._idle_ms is None or now - since < self._idle_ms

    def _waits(self, now: float) -> bool:
        """Return whether there is no watermark yet, since a source that is not idle has sent nothing."""
        return self._unheard > 0 and self._is_active(self._began, now)

    def _least(self, now: float) -> int | None:
        """Return the least of the greatest timestamps of the sources that are not idle; None if all are."""
        return min(
            (
                source.greatest
                for source in self._sources.values()
                if source.greatest is not None and self._is_active(source.since, now)
            ),
            default=None,
        )

    @property
    def has_started(self) -> bool:
        """True if any source has sent something."""
        return bool(self._sources)

    def barren(self, now: float) -> set[tuple[str, int]]:
        """Return the sources that are left out although ``idle_ms`` is not set, as (component, task)."""
        return set()

    def silent(self) -> list[tuple[str, str]]:
        """Return the streams, as (component, stream), of which a task has sent nothing yet."""
        return [stream for stream, missing in self._expected.items() if missing > 0]

    def saved(self) -> dict[str, Any]:
        """Return the watermark's part of a checkpoint."""
        with_silence = self._in_batches and self._idle_ms is not None
        sources = [
            [*key, source.greatest, *([round(source.since)] if with_silence else [])]
            for key, source in sorted(self._sources.items())
        ]
        return {"watermark": self.current, "sources": sources}

    def restore(self, saved: Mapping[str, Any], now: float, tasks: Mapping[int, str]) -> None:
        """Resume from the result of ``saved``.

        Args:
            saved: The watermark's part of a checkpoint.
            now: The time of the clock, in milliseconds.
            tasks: The component of each present task; the sources of other tasks are removed.
        """
        self.current = saved["watermark"]
        began = self._began
        for component, stream, task, greatest, *since in saved["sources"]:
            if component in self._merged or task in tasks:
                source = self.source(component, stream, task, now)
                if source.greatest is None or (greatest is not None and greatest > source.greatest):
                    source.greatest = greatest
                if component not in self._merged and tasks[task] != component:
                    self._elsewhere[component, stream, task] = source.greatest
                if since and self._in_batches:  # elsewhere this task's downtime does not count as silence
                    source.since = since[0]
        self._began = began if self._in_batches else now

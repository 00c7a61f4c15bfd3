"""The members of a chain, as its process tells of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.chains.names import chain_stream

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.runtime.counters import TaskStats
    from multilang.runtime.plan import TaskPlan


class Leaving:
    """The counts of tuples that leave a chain, for those of the member that emitted them, which counts its emits itself."""

    __slots__ = ("_stats", "emitted")

    def __init__(self, stats: TaskStats) -> None:
        self._stats = stats
        self.emitted = 0

    @property
    def transferred(self) -> int:
        """The member's deliveries."""
        return self._stats.transferred

    @transferred.setter
    def transferred(self, number: int) -> None:
        """Count them."""
        self._stats.transferred = number


def member_of(stream: str, members: Mapping[str, TaskPlan]) -> str | None:
    """Return the member whose tuples leave a chain on this stream; None: it is no chain, or the stream has several."""
    for member, plan in members.items():
        if any(stream == chain_stream(member, name) for name in plan.spec.streams):
            return member
    return None


class Inside:
    """The inside of a chain's process: the counts of its members, and the tuples that come of none from outside.

    Args:
        plan: The chain's task.
        stats: The counts of all tasks and members, by their ids.
    """

    def __init__(self, plan: TaskPlan, stats: Mapping[int, TaskStats]) -> None:
        self._members = {member: stats[each.id] for member, each in plan.members.items()}
        self._held = 0
        self._told = 0
        self._at = 0.0

    def told(self, members: Mapping[str, Any], held: int, works: bool, now: float) -> None:
        """Take note of what the members did since they told of it last.

        Args:
            members: Their counts; see ``ChildSender.chain``.
            held: The number of tuples inside that come of none from outside.
            works: Whether new ones of these may come of tuples that are waited for, and not of ticks alone.
            now: The time.
        """
        for member, (executed, emitted, transferred, acked, failed, secs) in members.items():
            stats = self._members.get(member)
            if stats is None:
                continue
            stats.received += executed
            stats.executed += executed
            stats.emitted += emitted
            stats.transferred += transferred
            stats.acked += acked
            stats.failed += failed
            stats.busy = (stats.busy or 0.0) + secs
            if secs:
                stats.execute.add(secs, executed)
        if held > self._told and works:
            self._held += held - self._told
            self._at = now
        self._held = max(min(self._held, held), 0)
        self._told = held

    def held_since(self, stale_before: float) -> int:
        """Return the number of tuples inside that are waited for, unless they were forgotten."""
        return self._held if self._held and self._at >= stale_before else 0

    def lose(self) -> None:
        """Count what died with the process."""
        for stats in self._members.values():
            stats.lost += stats.unfinished
        self._held = self._told = 0

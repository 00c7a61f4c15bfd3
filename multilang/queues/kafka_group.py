"""The messages that a consumer group has not read yet, in the partitions that a task of it does not have.

A task that has read all of its own partitions may still get others: a partition has no owner for a moment in a rebalance,
and after its owner was killed, until the group has noticed. So a task asks Kafka whether the group has committed these
partitions up to their end.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from typing import Any

    from multilang.state.kafka_client import Topic

_AGAIN_SECS = 0.25  # after there was something unread
_STALE_SECS = 1.0  # that an answer holds otherwise
_PATIENCE_SECS = 1.0  # with brokers: the task does nothing else meanwhile
_REST_SECS = 5.0  # after they did not answer
_LONGER_SECS = 5.0  # patience with what is seldom asked, by a connection of its own


class Rest:
    """The partitions of a topic that other members of the group have, or no member.

    Later messages are not waited for: a partition counts as read when the group has committed it up to its end at the
    first look.

    Kafka is asked by a client that is no member of the group: a member's connections wait for messages most of the time.

    Args:
        topic: The topic.
        group: The group.
        wait_secs: Seconds without a change of the group's members, after which messages that a member has, and has not
            committed, are left to it.
        clock: The present time, in seconds.
        log: Logs what is left to others.
    """

    def __init__(
        self,
        topic: Topic,
        group: str,
        wait_secs: float,
        clock: Callable[[], float],
        log: Callable[[str], None],
    ) -> None:
        self._topic = topic
        self._client: Any = None
        self._group = group
        self._wait_secs = wait_secs
        self._clock = clock
        self._log = log
        self.changed()

    def changed(self) -> None:
        """Forget all answers of Kafka, after a rebalance."""
        self._ends: dict[int, int] = {}  # partition -> where it ended at the first look; only where messages are unread
        self._is_read = False
        self._look_at = float("-inf")
        self._unread_since: float | None = None
        self._left: list[int] = []

    @property
    def is_due(self) -> bool:
        """True if Kafka is asked next time."""
        return self._clock() >= self._look_at

    def close(self) -> None:
        """Close the client."""
        if self._client is not None:
            self._client.close()

    def is_read(self, own: Container[int], member: str) -> bool:
        """Return whether the group has read all partitions but those that the task has.

        Args:
            own: The task's partitions.
            member: Its id in the group.

        Raises:
            Exception: The topic's error: Kafka does not answer. It is asked again after a while.
        """
        if self.is_due:
            self._is_read = False
            self._look_at = self._clock() + _REST_SECS
            self._is_read = self._look(own, member)
            self._look_at = self._clock() + (_STALE_SECS if self._is_read else _AGAIN_SECS)
        return self._is_read

    def _look(self, own: Container[int], member: str) -> bool:
        if self._client is None:
            self._client = self._topic.consumer({"group.id": self._group})
        count = self._topic.partitions(self._client, _PATIENCE_SECS)
        others = [number for number in range(count) if number not in own]
        unread = self._unread(others) if others else []
        if not unread:
            self._unread_since = None
            self._left = []
            return True
        if self._unread_since is None:
            self._unread_since = self._clock()
        return self._clock() >= self._unread_since + self._wait_secs and self._others_have(unread, member)

    def _unread(self, others: list[int]) -> list[int]:
        """Return the partitions among ``others`` in which the group has something to read."""
        committed = self._topic.committed(self._client, others, _PATIENCE_SECS)
        new = [number for number in others if number not in self._ends]
        unread = []
        for number, (first, end) in (self._topic.all_ends(self._client, new, _PATIENCE_SECS) if new else {}).items():
            if first < end != committed[number]:
                unread.append(number)
                if committed[number] < end:  # otherwise the topic was made anew
                    self._ends[number] = end
        known = [number for number in others if number not in new]
        unread += [number for number in known if committed[number] < self._ends[number]]
        # The end of a partition that is read is asked for anew next time.
        self._ends = {number: end for number, end in self._ends.items() if number in unread}
        return unread

    def _others_have(self, unread: list[int], member: str) -> bool:
        """Return whether other members have these partitions."""
        members = self._topic.members(self._group, _LONGER_SECS)
        if members is None or any(members.get(number, member) == member for number in unread):
            return False
        if self._left != unread:
            self._left = unread
            self._log(
                f"partitions {unread} of {self._topic.where} are with other members of group {self._group!r}, which have not "
                f"committed them to their end for {self._wait_secs:g} seconds; they are left to these"
            )
        return True

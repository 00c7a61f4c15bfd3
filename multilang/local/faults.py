"""The faults of a simulated cluster."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Faults:
    """The probabilities of faults, and their bounds.

    Attributes:
        crash: The probability that a task dies while it works on a tuple or command. Only the first part of its output
            is delivered. The tuples that it held are lost, and so are those that arrive before it is restarted.
        acker_crash: The probability that an acker dies of a message and loses all entries.
        late: The probability that a message is late.
        late_secs: The longest time of a late message, in seconds; None: three message timeouts, so that tuples time out
            although they are not lost.
        restart_secs: The longest time until a dead task is restarted, in seconds.
        spouts: Whether spouts die, too. Their source must then redeliver what they had emitted.
        pause_secs: The seconds after a fault in which there is no other one.
        limit: The number of faults after which there are no more, so that the topology can finish.
    """

    crash: float = 0.01
    acker_crash: float = 0.002
    late: float = 0.01
    late_secs: float | None = None
    restart_secs: float = 1.0
    spouts: bool = False
    limit: int = 20
    pause_secs: float = 0.0

    def __post_init__(self) -> None:
        for name in ("crash", "acker_crash", "late"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"Faults({name}={getattr(self, name)!r}): a probability is between 0 and 1")
        if (
            self.restart_secs < 0
            or not self.pause_secs >= 0
            or (self.late_secs is not None and self.late_secs < 0)
            or self.limit < 0
        ):
            raise ValueError(f"{self!r}: seconds and the limit are at least 0")


NO_FAULTS = Faults(crash=0, acker_crash=0, late=0, limit=0)

"""What goes wrong in a simulated cluster, by how much of it, drawn from the run's seed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Faults:
    """Probabilities for each event, and bounds.

    ``crash``: that a task dies of the tuple or command that it works on; of what it said meanwhile only a beginning gets
    through, what it held is lost, and so is what comes to it before it is started again ``restart_secs`` later (at the
    most). ``acker_crash``: that an acker dies of a message and forgets everything. ``late``: that a message takes up to
    ``late_secs`` (None: three message timeouts, so that tuples time out although they are not lost). ``spouts``: whether
    spouts die too; then what they had emitted is their source's to give again. ``limit``: after so many faults nothing
    goes wrong any more, so that the topology can come to its end.
    """

    crash: float = 0.01
    acker_crash: float = 0.002
    late: float = 0.01
    late_secs: float | None = None
    restart_secs: float = 1.0
    spouts: bool = False
    limit: int = 20

    def __post_init__(self) -> None:
        for name in ("crash", "acker_crash", "late"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"Faults({name}={getattr(self, name)!r}): a probability is between 0 and 1")
        if self.restart_secs < 0 or (self.late_secs is not None and self.late_secs < 0) or self.limit < 0:
            raise ValueError(f"{self!r}: seconds and the limit are at least 0")


NO_FAULTS = Faults(crash=0, acker_crash=0, late=0, limit=0)

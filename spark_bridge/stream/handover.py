"""Spouts that a query runs as they are, under exact alignment: their positions are saved together with the states.

A spout's log has the position at each row where a batch may end. It may be ahead of the states by rows that are in no
batch yet. The position at a batch's end is saved with the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.topology.errors import TopologyError
from spark_bridge.stream.spout_log import SpoutLog, positions_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_bridge.job.stateful import Rows
    from spark_bridge.job.states import LogPlace, States


class Handover:
    """The positions of a query's spouts. ``logs``: spout -> its log, which no process has opened yet.

    Raises TopologyError when the states have changed without this query.
    """

    def __init__(self, states: States, logs: Mapping[str, str]) -> None:
        self._states = states
        self._paths = dict(logs)
        self._places = {spout: self._begun(spout, path) for spout, path in logs.items()}

    def moved(self, rows: Mapping[str, int]) -> tuple[dict[str, Rows], dict[str, LogPlace]]:
        """Return the changes of the spouts' states, and the places in their logs, after a batch with so many rows of
        each.

        They have the form that ``States.save`` takes.
        """
        for spout, (log, row) in self._places.items():
            self._places[spout] = (log, row + rows[spout])
        positions = {
            spout: list(positions_in(path, self._places[spout][1]).values()) for spout, path in self._paths.items()
        }
        return self._states.moved(positions), self._places

    def _begun(self, spout: str, path: str) -> LogPlace:
        log = SpoutLog(path)
        try:
            if not log.next:
                positions = self._states.positions(spout)
                log.append((), {task: each for task, each in enumerate(positions) if each is not None})
                self._states.follow(spout, (log.id, 0))
            row = self._states.followed(spout, log.id)
            if row is None:
                raise TopologyError(
                    f"the state in {self._states.describe()} has gone on without this query, and spout {spout!r} with it, so that "
                    f"what is in the query's log ({log.name}) may be counted there already: begin a new checkpoint, whose "
                    "spouts go on where the state is"
                )
            return log.id, row
        finally:
            log.close()

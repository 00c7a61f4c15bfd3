"""The function of one Spark stage: it runs the tasks of one worker."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from spark_bridge.job.worker import StageWorker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from spark_bridge.job.blocks import Record
    from spark_bridge.job.job import Job

# All rows of a block are alive at once. With Python's default of 700 the garbage collector would look through
# everything that a worker has imported for each block, which takes longer than the rows do.
_COLLECT_AT = 20_000


class Stage:
    """The function of one level's Spark stage. ``known``: what bolts know from before this job, by task."""

    def __init__(self, job: Job, level: int, known: Mapping[int, bytes]) -> None:
        self.job = job
        self.level = level
        places = job.layout.places
        self.known = {task: payload for task, payload in known.items() if places[task][0] == level}

    def __call__(self, index: int, records: Iterable[Any]) -> Iterator[tuple[int, Record]]:
        """Return the records that the worker of this index sends."""
        worker = StageWorker(self.job, self.level, index, self.known)
        usual = gc.get_threshold()
        gc.set_threshold(_COLLECT_AT, *usual[1:])
        try:
            yield from worker.receive(records) if self.level else worker.read(records)
        finally:
            gc.set_threshold(*usual)

"""The function of one Spark stage: it runs the tasks of one worker."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

from multilang import __version__
from multilang.child.garbage import collect_rarely
from multilang.errors import SparkJobError
from spark_bridge.job.worker import StageWorker
from spark_bridge.loaded import freeze_once

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from spark_bridge.job.blocks import Record
    from spark_bridge.job.job import Job


class Stage:
    """The function of one level's Spark stage. ``known``: what bolts know from before this job, by task."""

    def __init__(self, job: Job, level: int, known: Mapping[int, bytes]) -> None:
        self.version = __version__
        self.job = job
        self.level = level
        places = job.layout.places
        self.known = {task: payload for task, payload in known.items() if places[task][0] == level}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what was pickled in the driver, and check that it has the same version of the library as the executor."""
        theirs = state.get("version")
        if theirs != __version__:
            raise SparkJobError(
                f"the executors' Python ({sys.executable}) has storm-multilang {__version__}, the driver's has {theirs}: "
                "install the same version in both"
            )
        self.__dict__.update(state)

    def __call__(self, index: int, records: Iterable[Any]) -> Iterator[tuple[int, Record]]:
        """Return the records that the worker of this index sends."""
        freeze_once()
        worker = StageWorker(self.job, self.level, index, self.known)
        usual = collect_rarely()  # all rows of a block are alive at once
        try:
            yield from worker.receive(records) if self.level else worker.read(records)
        finally:
            gc.set_threshold(*usual)

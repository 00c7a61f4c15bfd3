"""The records that stages send: which of them come to the driver, and the functions that Spark runs on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_bridge.job.blocks import REPORT, STATE
from spark_bridge.job.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from spark_bridge.job.job import Job


def stage_function(
    job: Job, level: int, known: Mapping[int, bytes], first: int = 0
) -> Callable[[int, Iterable[Any]], Iterable[Any]]:
    """Return the function of one level's stage, for Spark, on an RDD whose first partition is for worker ``first``."""
    stage = Stage(job, level, known)

    def run(index: int, records: Iterable[Any]) -> Iterable[Any]:
        return stage(first + index, records)

    return run


def record_of(pair: tuple[int, Any]) -> Any:
    """Return the record of a pair that is partitioned by its key."""
    return pair[1]


def keyed(record: Any) -> tuple[int, Any]:
    """Return a record with a key."""
    return 0, record


def is_report(record: Any) -> bool:
    """Return whether a record is a task's report of its round."""
    return record[0] == REPORT  # type: ignore[no-any-return]


def comes_here(record: Any, tasks: frozenset[int] | None) -> bool:
    """Return whether the driver wants the record: reports, and what the bolts of these tasks (None: of all) know."""
    return is_report(record) or (is_state(record) and (tasks is None or record[6] in tasks))


def is_state(record: Any) -> bool:
    """Return whether a record is what a bolt knew at the end of its round."""
    return record[0] == STATE  # type: ignore[no-any-return]

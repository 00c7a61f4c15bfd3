"""Waiting for a Spark job while reporting its progress."""

from __future__ import annotations

import re
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, NoReturn
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from multilang.errors import SparkJobError, TaskStartError
from spark_bridge.executors import what_is_missing, why_none_runs, without_traces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pyspark import RDD, SparkContext

    from multilang.engine.status import RunStatus

SPARK_ERRORS = (Py4JError, PySparkException)
DESCRIPTION = "spark.job.description"
"""Spark's local property with the description of the jobs that a thread starts."""
_STEP_SECS = 0.2


@dataclass(frozen=True)
class JobProgress:
    """The progress of a job.

    Attributes:
        round: The present round, from 1.
        acked: The number of spout tuples that were acked in earlier rounds.
        done: The number of Spark tasks of this round that have ended, in all its stages.
        tasks: The number of Spark tasks of this round.
        status: The status, with the counts of earlier rounds.
    """

    round: int
    acked: int
    done: int
    tasks: int
    status: RunStatus


def collected(
    rdd: RDD[Any], description: str, tell: Callable[[int, int], None] | None = None, sizes: Sequence[int] = ()
) -> list[Any]:
    """Return ``rdd.collect()``.

    ``description``: of the job, in Spark's UI; ``tell``: called with tasks done and tasks in all, several times a second;
    ``sizes``: the tasks of each stage.
    """
    sc = rdd.context
    before = sc.getLocalProperty(DESCRIPTION)
    sc.setLocalProperty(DESCRIPTION, description)
    try:
        return _collected(rdd) if tell is None else _watched(rdd, sc, tell, sum(sizes))
    finally:
        sc.setLocalProperty(DESCRIPTION, before)  # type: ignore[arg-type]  # None takes it away


def _collected(rdd: RDD[Any]) -> list[Any]:
    try:
        return rdd.collect()
    except Exception as error:  # noqa: BLE001 - of Spark, which names its own and Java's
        raise_readable(error)


def _watched(rdd: RDD[Any], sc: SparkContext, tell: Callable[[int, int], None], tasks: int) -> list[Any]:
    from pyspark import InheritableThread

    tag = f"multilang-{uuid4()}"  # no group: the jobs stay in the caller's, who may cancel it
    answer: list[Any] = []
    done = Event()

    def work() -> None:
        sc.addJobTag(tag)
        try:
            answer.append(_collected(rdd))
        except Exception as error:  # noqa: BLE001  # raised again below, in the caller's thread
            answer.append(error)
        finally:
            done.set()
            sc.removeJobTag(tag)  # the thread of Java may be used again

    thread = InheritableThread(target=work)
    thread.start()
    try:
        while not done.wait(_STEP_SECS):
            tell(_done(sc, tag), tasks)
    except BaseException:
        sc.cancelJobsWithTag(tag)
        thread.join()
        raise
    thread.join()
    if isinstance(answer[0], Exception):
        raise answer[0]
    tell(tasks, tasks)
    return answer[0]  # type: ignore[no-any-return]


def _done(sc: SparkContext, tag: str) -> int:
    """Return the number of ended tasks in the jobs with this tag."""
    tracker = sc.statusTracker()
    of_java: Any = sc._jsc.sc().statusTracker()
    total = 0
    for job in of_java.getJobIdsForTag(tag):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info is not None else ():
            found = tracker.getStageInfo(stage)
            total += found.numCompletedTasks if found is not None else 0
    return total


_STOPPED = (
    "java.lang.InterruptedException",
    "java.io.InterruptedIOException",
    "java.nio.channels.ClosedByInterruptException",
)


def brief(error: Exception) -> SparkJobError:
    """Return the error that Spark is given for a batch that failed.

    Spark searches its text for a sign that the query was stopped, with a pattern that needs more stack the longer the
    text is, until the stack overflows. So the text has only that sign, or else nothing of Spark's own stack traces.
    """
    text = str(error)
    for name in _STOPPED:
        if name in text:
            return SparkJobError(f"py4j.protocol.Py4JJavaError: An error occurred while calling a stopped job: {name}")
    return readable(error) if isinstance(error, SPARK_ERRORS) else SparkJobError(f"{type(error).__name__}: {text}")


_UNKNOWN = "the Spark job failed"
_OF_A_JOB = re.compile(r".*multilang\.(?:topology\.)?errors\.(\w+): (.*)", re.DOTALL)
_OF_A_COLUMN = re.compile(r".*\[USER_RAISED_EXCEPTION\] multilang\.component\.errors\.(\w+): (.*)", re.DOTALL)


def raise_readable(error: Exception) -> NoReturn:
    """Raise the error that a task raised, without Spark's own around it, or else Spark's message and its error."""
    found = readable(error)
    if _UNKNOWN in str(found):
        raise found from error
    raise found from None


def readable(error: Exception) -> SparkJobError:
    """Return the error that a task raised, taken out of Spark's text around it, or else Spark's own message."""
    text = str(error)
    ours = _OF_A_JOB.match(text) or _OF_A_COLUMN.match(text)  # the first may contain an error of a source
    if ours is not None:
        kind = TaskStartError if ours[1] == "TaskStartError" else SparkJobError
        return kind(without_traces(ours[2]))
    none_runs = why_none_runs(text)
    if none_runs is not None:
        return SparkJobError(none_runs)
    at = text.rfind("Traceback (most recent call last)")
    if at >= 0:
        traceback, missing = (
            text[at:].partition("\n\n")[0].partition("\n SQLSTATE: ")[0].rstrip(),
            what_is_missing(text),
        )
        if missing and traceback.rpartition("\n")[2].startswith("ModuleNotFoundError: "):
            return SparkJobError(missing)
        return SparkJobError(f"a Spark task failed:\n{traceback}" + (f"\n\n{missing}" if missing else ""))
    message = text.partition("\n\tat ")[0].strip()
    if message.startswith("An error occurred while calling"):
        message = message.partition("\n: ")[2]
    cause = text.rpartition("\nCaused by: ")[2].partition("\n")[0].strip() if "\nCaused by: " in text else ""
    if cause and cause not in message:  # Spark's own text is often only "Job aborted."
        message = f"{message[:1500]}; {cause}"
    return SparkJobError(f"{_UNKNOWN}: {message[:2000]}")

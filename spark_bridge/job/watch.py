"""Waiting for a Spark job while reporting its progress."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
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
    from pyspark.status import SparkJobInfo

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
    rdd: RDD[Any],
    description: str,
    tell: Callable[[int, int], None] | None = None,
    sizes: Sequence[int] = (),
    who: Callable[[tuple[int, int]], str] | None = None,
) -> list[Any]:
    """Return ``rdd.collect()``.

    ``description``: of the job, in Spark's UI; ``tell``: called with tasks done and tasks in all, several times a second;
    ``sizes``: the tasks of each of the last stages; ``who``: names what runs in a task, by its stage's place in
    ``sizes`` and its number.
    """
    sc = rdd.context
    before = sc.getLocalProperty(DESCRIPTION)
    tag = f"multilang-{uuid4()}"  # no group: the jobs stay in the caller's, who may cancel it
    sc.setLocalProperty(DESCRIPTION, description)
    sc.addJobTag(tag)
    call = partial(_collected, rdd, tag, len(sizes), who)
    try:
        return call() if tell is None else _watched(call, sc, tag, tell, sum(sizes))
    finally:
        sc.removeJobTag(tag)
        sc.setLocalProperty(DESCRIPTION, before)  # type: ignore[arg-type]  # None takes it away


def _collected(rdd: RDD[Any], tag: str, levels: int, who: Callable[[tuple[int, int]], str] | None) -> list[Any]:
    try:
        return rdd.collect()
    except Exception as error:
        found = None if who is None else _lost(rdd.context, tag, str(error), levels, who)
        if found is not None:
            raise found from error
        raise_readable(error)  # of Spark, which names its own and Java's


def _watched(
    call: Callable[[], list[Any]], sc: SparkContext, tag: str, tell: Callable[[int, int], None], tasks: int
) -> list[Any]:
    from pyspark import InheritableThread

    answer: list[Any] = []
    done = Event()

    def work() -> None:
        try:
            answer.append(call())
        except Exception as error:  # noqa: BLE001  # raised again below, in the caller's thread
            answer.append(error)
        finally:
            done.set()

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


def _jobs(sc: SparkContext, tag: str) -> list[SparkJobInfo]:
    """Return the jobs with this tag."""
    tracker = sc.statusTracker()
    of_java: Any = sc._jsc.sc().statusTracker()
    found = [tracker.getJobInfo(job) for job in of_java.getJobIdsForTag(tag)]
    return [info for info in found if info is not None]


def _done(sc: SparkContext, tag: str) -> int:
    """Return the number of ended tasks in the jobs with this tag."""
    tracker = sc.statusTracker()
    found = [tracker.getStageInfo(stage) for info in _jobs(sc, tag) for stage in info.stageIds]
    return sum(info.numCompletedTasks for info in found if info is not None)


_FAILED_TASK = re.compile(r"Task (\d+) in stage (\d+)\.\d+ failed (\d+) times?")
_NO_ANSWER = ("Python worker exited unexpectedly", "ExecutorLostFailure")


def _lost(
    sc: SparkContext, tag: str, text: str, levels: int, who: Callable[[tuple[int, int]], str]
) -> SparkJobError | None:
    """Return the error of a job whose task was lost with its process, which could name nothing; None for any other error."""
    task = _FAILED_TASK.search(text)
    if task is None or not any(sign in text for sign in _NO_ANSWER):
        return None
    number, stage = int(task[1]), int(task[2])
    for info in _jobs(sc, tag):
        stages = sorted(info.stageIds)[
            -levels:
        ]  # Spark counts them upwards; the sources may have some of their own before
        if stage in stages:
            return SparkJobError(
                f"the Spark task with {who((stages.index(stage), number))} was lost {task[3]} times, because its process was killed or "
                "crashed. If memory ran out, give the component more tasks, or the executors more memory "
                "(spark.executor.memoryOverhead). If native code crashed, spark.python.worker.faulthandler.enabled=true shows where"
            )
    return None


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

"""A topology run as a Spark job: bolts are stages, groupings are shuffles, and tuples are acked and replayed as on
Storm.
"""

from __future__ import annotations

from spark_bridge.installed import check_pyspark

check_pyspark(__name__)  # before the imports that would fail without a word about the extra

from multilang.errors import SparkJobError, TaskStartError  # noqa: E402
from spark_bridge.job.result import FailedTuple, JobResult, ReportedError  # noqa: E402
from spark_bridge.job.run import run_topology  # noqa: E402
from spark_bridge.job.watch import JobProgress  # noqa: E402

__all__ = [
    "FailedTuple",
    "JobProgress",
    "JobResult",
    "ReportedError",
    "SparkJobError",
    "TaskStartError",
    "run_topology",
]

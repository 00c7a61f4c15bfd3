"""A topology run as a Spark job: bolts are stages, groupings are shuffles, and tuples are acked and replayed as on
Storm.
"""

from __future__ import annotations

from spark_bridge.job.errors import ComponentStartError, NotOnSparkError, SparkJobError
from spark_bridge.job.result import FailedTuple, JobResult, ReportedError
from spark_bridge.job.run import run_topology
from spark_bridge.job.watch import JobProgress

__all__ = [
    "ComponentStartError",
    "FailedTuple",
    "JobProgress",
    "JobResult",
    "NotOnSparkError",
    "ReportedError",
    "SparkJobError",
    "run_topology",
]

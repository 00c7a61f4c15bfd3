"""A topology run as a Spark job: each bolt a stage, groupings as shuffles, guaranteed processing as on Storm."""

from __future__ import annotations

from spark_bridge.job.errors import ComponentStartError, NotOnSparkError, SparkJobError
from spark_bridge.job.result import FailedTuple, JobResult, ReportedError
from spark_bridge.job.run import run_topology
from spark_bridge.job.watch import Progress

__all__ = [
    "ComponentStartError",
    "FailedTuple",
    "JobResult",
    "NotOnSparkError",
    "Progress",
    "ReportedError",
    "SparkJobError",
    "run_topology",
]

"""Checks that a checkpoint belongs to what is stored beside it."""

from __future__ import annotations

from multilang.errors import SparkJobError


def check_next(batch: int, last: int | None, where: str) -> None:
    """Raise SparkJobError unless ``batch`` follows the query's last batch that ``where`` has (None: it has none)."""
    if batch != (0 if last is None else last + 1):
        seen = "no batch of this query" if last is None else f"its batches up to {last}"
        raise SparkJobError(
            f"the checkpoint is at batch {batch}, and {where} has {seen}: they don't belong together. Name the place that the "
            "query had; or begin a new checkpoint, which reads its sources from their beginning, and with it an empty place"
        )


def check_rows(batch: int, rows: object, known: object, where: str) -> None:
    """Raise SparkJobError if a batch that ``where`` has was planned anew, with other ``rows`` than the ``known`` ones."""
    if None not in (rows, known) and rows != known:
        raise SparkJobError(
            f"batch {batch} has other rows in this checkpoint than those that {where} has of it, so that some would be counted twice or "
            "not at all: the checkpoint is an older copy, or lost its last files with its machine, and Spark has planned the batch "
            "anew. Give the query the checkpoint as it was; or begin a new checkpoint, which reads its sources from their "
            "beginning, and with it an empty place"
        )

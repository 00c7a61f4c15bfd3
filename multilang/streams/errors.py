"""The error of a stage of a stream."""

from __future__ import annotations

from multilang.errors import MultilangError


def stage_error(stage: str, error: BaseException) -> MultilangError:
    """Return the error of a stage that ``error`` caused; its text begins with the stage's name."""
    return MultilangError(f"stage {stage!r}: {type(error).__name__}: {error}")

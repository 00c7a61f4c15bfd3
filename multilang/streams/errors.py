"""The error of a stage of a stream."""

from __future__ import annotations

from multilang.errors import MultilangError


class StageError(MultilangError, RuntimeError):
    """An error in a stage of a stream, most often in the user's function; its text begins with the stage's name."""

    def __init__(self, stage: str, error: BaseException) -> None:
        super().__init__(f"stage {stage!r}: {type(error).__name__}: {error}")
        self.stage = stage

    @classmethod
    def of(cls, stage: str, error: BaseException) -> StageError:
        """Return the error of a stage in which ``error`` was raised elsewhere, with its traceback."""
        found = cls(stage, error)
        found.__cause__ = error
        return found

"""Recordings: what spouts emitted, line by line, and runs of a topology on them."""

from __future__ import annotations

from multilang.helpers.lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.recording.file import Emitted, Recording, new_recording
    from multilang.recording.recorded_spout import RecordedSpout, replayed

__all__ = ["Emitted", "RecordedSpout", "Recording", "new_recording", "replayed"]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "multilang.recording.file": ("Emitted", "Recording", "new_recording"),
        "multilang.recording.recorded_spout": ("RecordedSpout", "replayed"),
    },
)

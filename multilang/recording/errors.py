"""Errors of recordings."""

from __future__ import annotations

from multilang.component.errors import ConfigError


class RecordingError(ConfigError):
    """A recording can't be made or read, or does not fit the topology."""

"""The error of a source or sink that can't be read or written."""

from __future__ import annotations

from multilang.component.errors import ExplainedError


class ConnectorError(ExplainedError, RuntimeError):
    """A source or sink differs from what the connector was declared for, or can't be reached; the message names it and the fix."""

"""streamparse's classes under the module's name that older programs import."""

from __future__ import annotations

from multilang.compat.streamparse.storm.component import Component, StormHandler

__all__ = ["Component", "StormHandler"]

"""The version of streamparse whose semantics this package has."""

from __future__ import annotations

__version__ = "5.0.1"
VERSION = (5, 0, 1)

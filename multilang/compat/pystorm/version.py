"""The version of pystorm whose semantics this package has."""

from __future__ import annotations

__version__ = "3.1.4"
VERSION = (3, 1, 4)

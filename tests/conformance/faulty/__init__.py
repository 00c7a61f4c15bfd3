"""Components with a switch for each fault, in Python and in Node, and the table of the faults."""

from __future__ import annotations

from .faults import PROGRAMS, SHOULD, FaultyProgram, programs

__all__ = ["PROGRAMS", "SHOULD", "FaultyProgram", "programs"]

"""Correct components with one fault each, in a module for each kind of thing that they break."""

from __future__ import annotations

from . import bolts, conduct, framing, handshake, spouts, text  # noqa: F401 - each puts its own down
from .registry import MUTANTS, Bolt, Spout

__all__ = ["MUTANTS", "Bolt", "Spout"]

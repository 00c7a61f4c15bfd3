"""What goes wrong with state."""

from __future__ import annotations


class StateError(Exception):
    """State can't be read, written or found; the message names it and the fix."""


class UnanchoredEmitError(Exception):
    """A bolt of a stateful topology emitted a tuple that is anchored to nothing, without saying so (``anchors=[]``)."""

"""The errors of state; those of what it is stored in are ``multilang.store``'s."""

from __future__ import annotations

from multilang.component.errors import UnrecoverableError
from multilang.store.errors import (
    FencedError,
    InUseError,
    NotPermittedError,
    StateError,
    StoreGoneError,
    WrongProviderError,
)

__all__ = [
    "FencedError",
    "InUseError",
    "NotPermittedError",
    "ReshapedError",
    "StateError",
    "StoreGoneError",
    "UnanchoredEmitError",
    "WrongProviderError",
]


class ReshapedError(StateError, UnrecoverableError):
    """A stored state was written by a topology of another shape. The message names the difference and the fix."""


class UnanchoredEmitError(Exception):
    """A bolt of a stateful topology emitted a tuple without anchors, and did not say so with ``anchors=[]``."""

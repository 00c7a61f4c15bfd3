"""The errors of stored data."""

from __future__ import annotations

from multilang.component.errors import UnrecoverableError
from multilang.errors import MultilangError


class StateError(MultilangError):
    """State can't be read, written or found. The message names the state and the fix."""

    is_explained = True


class UnusableStateError(StateError, UnrecoverableError):
    """Stored state does not fit this task, however often it is started: it has another shape or owner, or may not be opened."""


class InUseError(StateError, UnrecoverableError):
    """Another run owns the place that was to be claimed. The message names that run."""


class FencedError(StateError, UnrecoverableError):
    """A newer epoch owns what this process writes to. Nothing was written, and nothing more may be."""


class StoreGoneError(StateError, UnrecoverableError):
    """Stored data is missing, damaged, or replaced by something else."""


class WrongProviderError(StateError, UnrecoverableError):
    """A user's store or provider of states, or an object that it made, breaks the contract of its base class."""


def shown(value: object) -> str:
    """Return the beginning of a value's text, and its type, for a message."""
    try:
        text = ascii(value)
    except RecursionError:
        text = "nested too deeply to be shown"
    return f"{text[:80]}{'…' if len(text) > 80 else ''} ({type(value).__name__})"

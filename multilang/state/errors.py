"""What goes wrong with state."""

from __future__ import annotations

from multilang.component.errors import UnrecoverableError


class StateError(Exception):
    """State can't be read, written or found; the message names it and the fix."""


class InUseError(StateError, UnrecoverableError):
    """Another run uses what was to be claimed; the message names it."""


class FencedError(StateError, UnrecoverableError):
    """Somebody else has taken over what this process wrote to, so that it may write no more; nothing was written."""


class StoreGoneError(StateError, UnrecoverableError):
    """What was stored is no longer there, is damaged, or something else is in its place."""


class WrongProviderError(StateError, UnrecoverableError):
    """A provider of states, or a state that it made, is not as multilang.state.StateProvider and State say."""


class UnanchoredEmitError(Exception):
    """A bolt of a stateful topology emitted a tuple that is anchored to nothing, without saying so (``anchors=[]``)."""

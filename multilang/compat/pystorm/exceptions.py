"""pystorm's exception."""

from __future__ import annotations

from multilang.errors import MultilangError


class StormWentAwayError(MultilangError):
    """The parent closed its end; only a component with streams of its own raises it."""

    def __init__(self) -> None:
        super().__init__("the input ended: the parent process closed it, or has ended")

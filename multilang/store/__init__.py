"""The one interface to durable data, and the databases behind it. See ``interface`` for its laws."""

from __future__ import annotations

from multilang.helpers.lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.store.claims import Claim, Owner
    from multilang.store.errors import FencedError, InUseError, StateError, StoreGoneError, WrongProviderError
    from multilang.store.interface import Store
    from multilang.store.opening import open_store

__all__ = [
    "Claim",
    "FencedError",
    "InUseError",
    "Owner",
    "StateError",
    "Store",
    "StoreGoneError",
    "WrongProviderError",
    "open_store",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        ".claims": ("Claim", "Owner"),
        ".errors": (
            "FencedError",
            "InUseError",
            "StateError",
            "StoreGoneError",
            "WrongProviderError",
        ),
        ".interface": ("Store",),
        ".opening": ("open_store",),
    },
)

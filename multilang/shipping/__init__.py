"""Shipping to a real Storm: topology jars, archives for the blob store, Flux, and Nimbus.

The names below are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.helpers.lazy import lazily

if TYPE_CHECKING:
    from multilang.shipping.archive import archive_folder
    from multilang.shipping.conf import default_conf, storm_conf
    from multilang.shipping.errors import ShippingError
    from multilang.shipping.flux import flux_yaml
    from multilang.shipping.jar import Shipment, pack
    from multilang.shipping.java_text import java_class
    from multilang.shipping.wheels import WheelTarget

__all__ = [
    "Shipment",
    "ShippingError",
    "WheelTarget",
    "archive_folder",
    "default_conf",
    "flux_yaml",
    "java_class",
    "pack",
    "storm_conf",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        ".archive": ("archive_folder",),
        ".conf": ("default_conf", "storm_conf"),
        ".errors": ("ShippingError",),
        ".flux": ("flux_yaml",),
        ".jar": ("Shipment", "pack"),
        ".java_text": ("java_class",),
        ".wheels": ("WheelTarget",),
    },
)

"""Shipping to a real Storm: topology jars, archives for the blob store, Flux, and Nimbus.

The names below are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multilang.shipping.archive import archive_folder
    from multilang.shipping.conf import default_conf, storm_conf
    from multilang.shipping.errors import ShippingError
    from multilang.shipping.flux import flux_yaml
    from multilang.shipping.jar import Shipment, pack
    from multilang.shipping.java_text import java_class
    from multilang.shipping.wheels import WheelTarget

_HOMES = {
    "ShippingError": "errors",
    "Shipment": "jar",
    "WheelTarget": "wheels",
    "archive_folder": "archive",
    "default_conf": "conf",
    "flux_yaml": "flux",
    "java_class": "java_text",
    "pack": "jar",
    "storm_conf": "conf",
}

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


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'multilang.shipping' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"multilang.shipping.{_HOMES[name]}"), name)

"""What can't be shipped."""

from __future__ import annotations


class ShippingError(ValueError):
    """Something can't go to a cluster; the text names it and says what to write instead."""

"""Imported before any thread is: pytest rewrites these modules, and CPython 3.11 can't do that in two threads at once."""

from __future__ import annotations

import spark_bridge.sources.served
import spark_bridge.sources.store  # noqa: F401

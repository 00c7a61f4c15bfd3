"""Why this process imports a topology's module."""

from __future__ import annotations

by_task = False
"""True while a task's process imports it to find its component.

The topology was checked where it was submitted, so that nothing is warned of again, and the module must not start a cluster.
"""

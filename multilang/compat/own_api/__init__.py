"""Component classes and topologies of other libraries written over to this library's own, where that means the same.

A class is found by its bases (``classes``), each of its lines is judged (``checks``, ``calls``, ``tuples``), and edits are made at the very
places (``source``), so that comments and layout stay. A class with anything that would mean something else here stays as it is, on the layer, with
the line and the reason. A topology of streamparse's DSL becomes a program of the builder (``topologies``, ``inputs``, ``parts``,
``statement``); ``project`` puts it together.
"""

from __future__ import annotations

from multilang.compat.own_api.project import BUILDER, Kept, Plan, plan

__all__ = ["BUILDER", "Kept", "Plan", "plan"]

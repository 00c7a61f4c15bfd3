"""Groupings: the division of a subscription's tuples among the subscriber's tasks. Every engine routes with these.

Each grouping is one class in one file of this package: its choice of tasks, its forms for Storm (on the wire, as Flux,
Thrift and Java text) and in words, and its properties for other parts. ``KINDS`` names them all. To add one, write its
file and its row in ``KINDS``; a method on ``BoltDeclarer`` is convenient for users, and not needed:
``declarer.grouping("split", Grouping("by_length", ["word"]))``.
"""

from __future__ import annotations

from multilang.topology.groupings.base import KINDS, Grouping, chooser, kind_of
from multilang.topology.groupings.own import CustomGrouping, GroupingContext

__all__ = ["KINDS", "CustomGrouping", "Grouping", "GroupingContext", "chooser", "kind_of"]

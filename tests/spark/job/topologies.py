"""Topologies that the command is given."""

from __future__ import annotations

from multilang import TopologyBuilder
from tests.spark.job.components import FailsAtFirst, Rows

builder = TopologyBuilder()
builder.set_spout("rows", Rows)
builder.set_bolt("fails", FailsAtFirst).shuffle_grouping("rows")
failing = builder.build("failing")

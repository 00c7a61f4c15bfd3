"""Bolts that may share a process, to be shown."""

from __future__ import annotations

from multilang import TopologyBuilder
from tests.cli.hops import Next, Numbers

builder = TopologyBuilder()
builder.set_spout("numbers", Numbers)
builder.set_bolt("next", Next).shuffle_grouping("numbers")
builder.set_bolt("near", Next).local_or_shuffle_grouping("next")
builder.set_bolt("far", Next).shuffle_grouping("near")
topology = builder.build("chained")

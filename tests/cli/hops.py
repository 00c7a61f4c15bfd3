"""Hops of all kinds, to be shown."""

from __future__ import annotations

from multilang import BasicBolt, ShellBolt, Spout, TopologyBuilder


class Numbers(Spout):
    output_fields = ("n",)


class Next(BasicBolt):
    output_fields = ("n",)


builder = TopologyBuilder()
builder.set_spout("numbers", Numbers)
builder.set_bolt("next", Next).shuffle_grouping("numbers")
builder.set_bolt("near", Next).local_or_shuffle_grouping("next")
builder.set_bolt("program", ShellBolt(["cat"], output_fields=["n"])).shuffle_grouping("next")
topology = builder.build("hops")

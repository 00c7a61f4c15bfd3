"""Components that know nothing of this library: on Storm's own storm.py and storm.js, and on nothing at all."""

from __future__ import annotations

from recorder import recorded

from multilang import ShellBolt, ShellSpout, TopologyBuilder

builder = TopologyBuilder()
builder.set_spout("numbers", ShellSpout(["python3", "plain_spout.py"], output_fields=["n", "nothing"]))
for name, command in (("storm_py", "python3 twice_py.py"), ("storm_js", "node twice_js.js")):
    bolt = ShellBolt(command.split(), output_fields=["twice"])
    builder.set_bolt(name, bolt, parallelism=2).fields_grouping("numbers", "n")
plain = ShellBolt(["python3", "plain_bolt.py"], output_fields=["n", "task"])
builder.set_bolt("plain", plain, parallelism=2).fields_grouping("numbers", "n")
topology = recorded(builder.build("languages"), "storm_py", "storm_js", "plain")

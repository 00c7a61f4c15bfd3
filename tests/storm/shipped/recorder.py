"""Adds to a topology a bolt that writes down what components emit, and which of their tasks did."""

from __future__ import annotations

import json
import os
from typing import Any

from multilang import BasicBolt, Context, Topology, Tuple
from multilang.topology.groupings import Grouping
from multilang.topology.model import ComponentSpec, Input


class Recorder(BasicBolt):
    """Lines of JSON in ``recorded`` in the folder ``test.folder``: component, index of its task, values."""

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        # Line by line, so that whoever reads it finds what was acked.
        self.file = open(os.path.join(conf["test.folder"], "recorded"), "a", buffering=1)

    def process(self, tup: Tuple) -> None:
        index = self.context.tasks(tup.component).index(tup.task)
        self.file.write(json.dumps([tup.component, index, tup.values]) + "\n")


def recorded(topology: Topology, *components: str) -> Topology:
    inputs = [Input(component, "default", Grouping("global")) for component in components]
    recorder = ComponentSpec("recorder", "bolt", Recorder(), factory=Recorder, streams={}, inputs=inputs)
    return Topology(topology.name, topology.conf, {**topology.components, "recorder": recorder}, module=__name__)

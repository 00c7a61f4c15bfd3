"""A topology of Petrel's, which is a function that gets a builder, as one of this library."""

from __future__ import annotations

import json
import os
import re
import sys

from multilang.compat.petrel.running import adapted
from multilang.compat.petrel.settings import Settings, settings_of
from multilang.compat.petrel.topologybuilder import TopologyBuilder as Declared
from multilang.component.streams import Stream
from multilang.topology import Topology, TopologyBuilder, TopologyError, importing
from multilang.topology.groupings import Grouping
from multilang.topology.home import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def own_topology(create: Callable[[Any], object], name: str | None = None) -> Topology:
    """Return the topology that a function of Petrel's declares as one of this library.

    The conf, and the numbers of tasks, are those of ``topology.yaml`` beside the function's file, or of another file there,
    which ``MULTILANG_ENVIRONMENT`` names without its ``.yaml``.

    Args:
        create: The function, which gets a builder.
        name: The topology's name; None, or ``create``: the name of its folder.

    Raises:
        TopologyError: It can't run.
        ConfigError: The file with the conf can't be read.
    """
    file = os.path.abspath(getattr(sys.modules.get(create.__module__), "__file__", None) or "create.py")
    folder = os.path.dirname(file)
    declared = Declared()
    create(declared)
    if not declared.commons:
        raise TopologyError(
            f"{create.__name__} of {file} declared nothing; it gets Petrel's builder, with setSpout and setBolt"
        )
    settings = Settings({}, {}) if importing.by_task else settings_of(folder)  # a task gets its conf from Storm
    settings.check(declared.commons)
    builder = TopologyBuilder()
    builder.folder = folder
    for id, spout in declared.spouts.items():
        _, component, tasks, conf = _parts(declared, settings, id, spout)
        builder.set_spout(id, component, tasks, conf=conf)
    for id, bolt in declared.bolts.items():
        common, component, tasks, conf = _parts(declared, settings, id, bolt)
        declarer = builder.set_bolt(id, component, tasks, conf=conf)
        for source, grouping in common.inputs.items():
            declarer.grouping(source.componentId, _grouping(grouping), source.streamId)
    topology = builder.build(_name(folder) if name in (None, "create") else name, settings.conf)
    topology.home = Home(folder, plain=True)
    return topology


def _parts(declared: Declared, settings: Settings, id: str, component: Any) -> tuple[Any, Any, int, dict[str, Any]]:
    common = declared.common(id, component)
    streams = {each: Stream(of.output_fields, of.direct) for each, of in common.streams.items()}
    default = streams.pop("default")
    fields = default if default.fields else None
    tasks = settings.tasks.get(id) or common.parallelism_hint or 1
    return common, adapted(component, fields, streams), int(tasks), json.loads(common.json_conf or "{}")


def _grouping(grouping: Any) -> Grouping:
    if grouping.kind == "fields":
        return Grouping("fields", grouping.fields) if grouping.fields else Grouping("global")
    return Grouping(grouping.kind)


def _name(folder: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", os.path.basename(folder)) or "topology"

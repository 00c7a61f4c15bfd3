"""The Java class that a Java user would write around a Python topology, which can also express what Flux can't."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from multilang.shipping.conf import storm_conf
from multilang.shipping.errors import ShippingError
from multilang.shipping.places import ShippedBlobs
from multilang.shipping.shippable import check_shippable

if TYPE_CHECKING:
    from typing import Any

    from multilang.shipping.jar import Shipment
    from multilang.topology import ComponentSpec

_IMPORTS = """\
import java.util.*;
import org.apache.storm.Config;
import org.apache.storm.StormSubmitter;
import org.apache.storm.grouping.PartialKeyGrouping;
import org.apache.storm.spout.ShellSpout;
import org.apache.storm.task.ShellBolt;
import org.apache.storm.topology.*;
import org.apache.storm.tuple.Fields;
"""
# Names that the class's own text uses, which are not available for components' classes.
_TAKEN = set(re.findall(r"[A-Z]\w+", _IMPORTS)) | {
    *(
        "ArrayList",
        "Arrays",
        "Exception",
        "HashMap",
        "IRichBolt",
        "IRichSpout",
        "Map",
        "Object",
        "OutputFieldsDeclarer",
    ),
    *("Override", "String", "TopologyBuilder"),
}


def java_class(shipment: Shipment, interpreter: str = "python3", places: ShippedBlobs | None = None) -> str:
    """Return the text of one Java class, with a ``main`` that submits the topology and a class for each component.

    Args:
        shipment: The packed topology.
        interpreter: The workers' command for Python.
        places: The blobs with the topology's files and Python; None: both are as usual.

    Raises:
        ShippingError: Storm can't run the topology, or a number of its conf is too large for Java.
    """
    topology = shipment.topology
    check_shippable(topology)
    places = places or ShippedBlobs()
    name = _class_name(topology.name, {}) + "Topology"
    classes: dict[str, str] = {}
    for id in topology.components:
        classes[id] = _class_name(id, {**dict.fromkeys(_TAKEN, ""), name: "", **dict.fromkeys(classes.values(), "")})
    conf = places.conf(storm_conf(topology))
    lines = [
        f"// {name}.java: compile with storm-client on the class path and put its classes into the topology's jar",
        _IMPORTS,
        f"public class {name} {{",
        "    public static void main(String[] args) throws Exception {",
        "        TopologyBuilder builder = new TopologyBuilder();",
    ]
    lines += [_declaration(spec, classes[spec.id]) for spec in topology.components.values()]
    lines.append("        Config conf = new Config();")
    lines += [f"        conf.put({_java(key)}, {_java(value)});" for key, value in conf.items()]
    lines += [
        f"        StormSubmitter.submitTopology({_java(topology.name)}, conf, builder.createTopology());",
        "    }",
    ]
    for spec in topology.components.values():
        lines += ["", *_component(spec, classes[spec.id], *places.start(shipment, spec.id, interpreter))]
    return "\n".join([*lines, *_map_of(), "}"]) + "\n"


def _declaration(spec: ComponentSpec, class_name: str) -> str:
    setter = "setSpout" if spec.kind == "spout" else "setBolt"
    text = f"        builder.{setter}({_java(spec.id)}, new {class_name}(), {spec.parallelism})"
    if spec.tasks != spec.parallelism:
        text += f".setNumTasks({spec.tasks})"
    for input_ in spec.inputs:
        text += f"\n            .{input_.grouping.to_java(f'{_java(input_.component)}, {_java(input_.stream)}')}"
    return text + ";"


def _component(spec: ComponentSpec, class_name: str, command: list[str], changes_directory: bool) -> list[str]:
    kind = "Spout" if spec.kind == "spout" else "Bolt"
    lines = [
        f"    public static class {class_name} extends Shell{kind} implements IRich{kind} {{",
        f"        public {class_name}() {{",
        f"            super({', '.join(map(_java, command))});",
        *([] if changes_directory else ["            changeChildCWD(false);"]),
        "        }",
        "",
        "        @Override",
        "        public void declareOutputFields(OutputFieldsDeclarer declarer) {",
    ]
    for name, stream in spec.streams.items():
        direct = "true" if stream.direct else "false"
        fields = ", ".join(map(_java, stream.fields))
        lines.append(f"            declarer.declareStream({_java(name)}, {direct}, new Fields({fields}));")
    lines += [
        "        }",
        "",
        "        @Override",
        "        public Map<String, Object> getComponentConfiguration() {",
        f"            return {_java(spec.conf)};",
        "        }",
        "    }",
    ]
    return lines


def _map_of() -> list[str]:
    return [
        "",
        "    private static Map<String, Object> mapOf(Object... pairs) {",
        "        Map<String, Object> map = new HashMap<>();",
        "        for (int i = 0; i < pairs.length; i += 2) {",
        "            map.put((String) pairs[i], pairs[i + 1]);",
        "        }",
        "        return map;",
        "    }",
    ]


def _class_name(text: str, taken: dict[str, str]) -> str:
    words = re.findall(r"[A-Za-z0-9]+", text)
    name = "".join(word[0].upper() + word[1:] for word in words) or "Component"
    if name[0].isdigit():
        name = f"C{name}"
    number, unique = 1, name
    while unique in taken:
        number += 1
        unique = f"{name}{number}"
    return unique


def _java(value: Any) -> str:
    """Return a conf value as an expression of Java."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if -(2**31) <= value < 2**31:
            return str(value)
        if -(2**63) <= value < 2**63:
            return f"{value}L"
        raise ShippingError(f"{value} is too large for a number of Java's in the conf; write it as a string")
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value)  # Java has the same escapes
    if isinstance(value, dict):
        return f"mapOf({', '.join(_java(part) for pair in value.items() for part in pair)})"
    return f"new ArrayList<Object>(Arrays.asList({', '.join(map(_java, value))}))"

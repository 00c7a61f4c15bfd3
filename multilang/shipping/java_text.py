"""The Java class that a Java user would write around a Python topology, which can also express what Flux can't."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from multilang.shipping.conf import storm_conf
from multilang.shipping.errors import ShippingError
from multilang.shipping.places import ShippedBlobs
from multilang.shipping.shippable import check_shippable
from multilang.topology.java import JavaComponent, JavaObject, fits_int

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
    lines += [f"        conf.put({java_value(key)}, {java_value(value)});" for key, value in conf.items()]
    lines += [
        f"        StormSubmitter.submitTopology({java_value(topology.name)}, conf, builder.createTopology());",
        "    }",
    ]
    for spec in topology.components.values():
        if isinstance(spec.component, JavaComponent):
            continue
        lines += ["", *_component(spec, classes[spec.id], *places.start(shipment, spec.id, interpreter))]
    return "\n".join([*lines, *HELPERS, "}"]) + "\n"


def _declaration(spec: ComponentSpec, class_name: str) -> str:
    setter = "setSpout" if spec.kind == "spout" else "setBolt"
    text = f"        builder.{setter}({java_value(spec.id)}, {_instance(spec, class_name)}, {spec.parallelism})"
    if spec.tasks != spec.parallelism:
        text += f".setNumTasks({spec.tasks})"
    if isinstance(spec.component, JavaComponent) and spec.conf:
        text += f".addConfigurations({java_value(spec.conf)})"
    for input_ in spec.inputs:
        text += (
            f"\n            .{input_.grouping.to_java(f'{java_value(input_.component)}, {java_value(input_.stream)}')}"
        )
    return text + ";"


def _instance(spec: ComponentSpec, class_name: str) -> str:
    if not isinstance(spec.component, JavaComponent):
        return f"new {class_name}()"
    made = spec.component.made
    return java_value(JavaObject(made, *spec.component.args) if isinstance(made, str) else made)


def _component(spec: ComponentSpec, class_name: str, command: list[str], changes_directory: bool) -> list[str]:
    kind = "Spout" if spec.kind == "spout" else "Bolt"
    lines = [
        f"    public static class {class_name} extends Shell{kind} implements IRich{kind} {{",
        f"        public {class_name}() {{",
        f"            super({', '.join(map(java_value, command))});",
        *([] if changes_directory else ["            changeChildCWD(false);"]),
        "        }",
        "",
        "        @Override",
        "        public void declareOutputFields(OutputFieldsDeclarer declarer) {",
    ]
    for name, stream in spec.streams.items():
        direct = "true" if stream.direct else "false"
        fields = ", ".join(map(java_value, stream.fields))
        lines.append(f"            declarer.declareStream({java_value(name)}, {direct}, new Fields({fields}));")
    lines += [
        "        }",
        "",
        "        @Override",
        "        public Map<String, Object> getComponentConfiguration() {",
        f"            return {java_value(spec.conf)};",
        "        }",
        "    }",
    ]
    return lines


def _made(value: JavaObject) -> str:
    name = value.java_class.replace("$", ".")
    arguments = ", ".join(map(java_value, value.args))
    if value.base is None:
        return f"new {name}({arguments})" if value.method is None else f"{name}.{value.method}({arguments})"
    if value.returns:
        return f"{_made(value.base)}.{value.method}({arguments})"
    return f"after({_made(value.base)}, it -> it.{value.method}({arguments}))"


# What the expressions of ``java_value`` call.
HELPERS = (
    "",
    "    private static Map<String, Object> mapOf(Object... pairs) {",
    "        Map<String, Object> map = new HashMap<>();",
    "        for (int i = 0; i < pairs.length; i += 2) {",
    "            map.put((String) pairs[i], pairs[i + 1]);",
    "        }",
    "        return map;",
    "    }",
    "",
    "    private interface Step<T> {",
    "        void on(T it) throws Exception;",
    "    }",
    "",
    "    private static <T> T after(T it, Step<T> step) throws Exception {",
    "        step.on(it);",
    "        return it;",
    "    }",
)


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


def java_value(value: Any) -> str:
    """Return a value, of a conf or an argument, as an expression of Java. Raises ShippingError for a number that is too large."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if fits_int(value):
            return str(value)
        if -(2**63) <= value < 2**63:
            return f"{value}L"
        raise ShippingError(f"{value} is too large for a number of Java's in the conf; write it as a string")
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value)  # Java has the same escapes
    if isinstance(value, JavaObject):
        return _made(value)
    if isinstance(value, bytes):
        return f"new byte[] {{{', '.join(str(each - 256 * (each > 127)) for each in value)}}}"
    if isinstance(value, dict):
        return f"mapOf({', '.join(java_value(part) for pair in value.items() for part in pair)})"
    return f"new ArrayList<Object>(Arrays.asList({', '.join(map(java_value, value))}))"

"""Objects of Java that are made when a topology is submitted, and go to the cluster serialised, as a Java topology's do.

A worker makes an object by itself of a class's name and plain arguments. Anything else, such as the configuration of a Kafka spout,
is made here: a JDK compiles and runs a few lines, which are written from the declaration.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import zipfile
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from multilang.shipping.cluster.artifacts import BRIEF_JVM, java, runs_sources, storm_jars
from multilang.shipping.errors import ShippingError
from multilang.shipping.java_text import HELPERS, java_value
from multilang.topology.java import JavaComponent, JavaObject, java_class_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from multilang.shipping.jar import Shipment
    from multilang.topology import Topology

_LIMIT = 120  # seconds
_STORMS = ("java.", "org.apache.storm.")  # where workers have classes without the topology's jar
_PROGRAM = """\
import java.io.*;
import java.nio.file.*;
import java.util.*;

@SuppressWarnings({{"unchecked", "rawtypes", "deprecation"}})
public class MadeForStorm {{
    public static void main(String[] args) throws Exception {{
        try (PrintWriter out = new PrintWriter(args[0], "UTF-8")) {{
{made}
        }}
    }}

    private static String serialized(String what, Object made, Class<?> wanted) throws Exception {{
        if (!wanted.isInstance(made)) {{
            throw new IllegalArgumentException(what + ": " + made.getClass().getName() + " is no " + wanted.getName());
        }}
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {{
            out.writeObject(made);
        }}
        return Base64.getEncoder().encodeToString(bytes.toByteArray());
    }}
{helpers}
}}
"""
_WANTED = {"spout": "org.apache.storm.spout.ISpout", "bolt": "org.apache.storm.task.IBolt"}


def with_java(shipment: Shipment, jars: Sequence[Path]) -> Shipment:
    """Return a shipment with the objects that Java has to make for its topology, after a look for their classes.

    Args:
        shipment: The packed topology.
        jars: The jars whose classes are added.

    Raises:
        ShippingError: A class is in none of the jars, or Java can't make an object.
        ShippingError: Storm's jars are needed for that, and can't be got.
    """
    topology = shipment.topology
    _check_classes(topology, jars, shipment.leave_out)
    wanted = {
        spec.id: spec.component.made
        for spec in topology.components.values()
        if isinstance(spec.component, JavaComponent) and isinstance(spec.component.made, JavaObject)
    }
    if not wanted or wanted.keys() <= shipment.java.keys():
        return shipment
    return replace(shipment, java=_made(topology, wanted, jars))


def _made(topology: Topology, wanted: Mapping[str, JavaObject], jars: Sequence[Path]) -> dict[str, bytes]:
    if not runs_sources():
        raise ShippingError(
            f"{', '.join(map(repr, wanted))} of topology {topology.name!r} is made by a JDK when the topology is submitted, and there is "
            "none here (Debian, Ubuntu: apt-get install default-jdk-headless; macOS: brew install openjdk), or JAVA_HOME names a runtime"
        )
    lines = [
        f"            out.println(serialized({java_value(f'{topology[id].kind} {id!r}')}, {java_value(made)}, "
        f"{_WANTED[topology[id].kind]}.class));"
        for id, made in wanted.items()
    ]
    with tempfile.TemporaryDirectory(prefix="multilang-java-") as folder:
        source, out = Path(folder, "MadeForStorm.java"), Path(folder, "made")
        source.write_text(_PROGRAM.format(made="\n".join(lines), helpers="\n".join(HELPERS)), encoding="utf-8")
        path = os.pathsep.join([str(storm_jars() / "lib" / "*"), *map(str, jars)])
        command = [java() or "java", *BRIEF_JVM, "-cp", path, "-Dlog4j2.level=OFF", str(source), str(out)]
        try:
            shown = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_LIMIT)
        except subprocess.TimeoutExpired:
            raise ShippingError(
                f"Java did not make {', '.join(map(repr, wanted))} of topology {topology.name!r} in {_LIMIT} seconds"
            ) from None
        if shown.returncode:
            lines = shown.stderr.replace(f"{source}:", "line ").strip().splitlines()
            output = "\n".join(line for line in lines if not line.startswith("\tat "))
            raise ShippingError(
                f"Java can't make {', '.join(map(repr, wanted))} of topology {topology.name!r} as declared. If a class is missing, add its "
                f"jar with --add-jar or --artifacts. Java's output:\n{output}"
            )
        return dict(zip(wanted, map(b64decode, out.read_text(encoding="utf-8").split()), strict=True))


def _check_classes(topology: Topology, jars: Sequence[Path], leave_out: Sequence[str]) -> None:
    """Raise ShippingError for a class that no jar has, and that is none of Storm's; each worker would end without it."""
    there: set[str] | None = None
    for spec in topology.components.values():
        if not isinstance(spec.component, JavaComponent):
            continue
        for name in java_class_names(spec.component.made):
            if name.startswith(_STORMS) or name in leave_out:
                continue
            there = _classes(jars) if there is None else there
            if f"{name.replace('.', '/')}.class" not in there:
                raise ShippingError(
                    f"{spec.kind} {spec.id!r} is of the Java class {name}, which is in none of the jars that are added: name its jar with "
                    f"--add-jar, or with --artifacts GROUP:NAME:VERSION what Maven gets; if the workers have it: --leave-out {name}"
                )


def _classes(jars: Sequence[Path]) -> set[str]:
    found: set[str] = set()
    for jar in jars:
        try:
            with zipfile.ZipFile(jar) as archive:
                found.update(archive.namelist())
        except (OSError, zipfile.BadZipFile) as error:
            raise ShippingError(f"{jar} is not a jar that can be read: {error}") from None
    return found

#!/usr/bin/env python3
"""Write multilang/topology/storm_keys.json: the keys of Storm's conf, from the jars of a release of Storm.

Each key has the annotations that it has in Storm's Config or DaemonConfig, by which Storm checks its value, and its value in Storm's
defaults.yaml. It needs javap, of a JDK, and PyYAML. The jars are those of a release, or of Maven:

    mvn dependency:copy -Dartifact=org.apache.storm:storm-client:2.8.3 -DoutputDirectory=jars
    mvn dependency:copy -Dartifact=org.apache.storm:storm-server:2.8.3 -DoutputDirectory=jars
    scripts/storm_keys.py jars/storm-client-2.8.3.jar jars/storm-server-2.8.3.jar
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import yaml

KEYS = Path(__file__).parents[1] / "multilang" / "topology" / "storm_keys.json"
CLASSES = ("org.apache.storm.DaemonConfig", "org.apache.storm.Config")  # what both have is checked as Config says
_FIELD = re.compile(r"^  public static final java\.lang\.String \w+;$")
_KEY = re.compile(r"^    ConstantValue: String (\S+)$")
_ANNOTATION = re.compile(r"^        org\.apache\.storm\.validation\.\w+\$(\w+)")
_MEMBER = re.compile(r"^          (\w+)=(.*)$")
_WITHOUT_MEANING = {"NotNull", "Password"}  # null is always the default; what is secret is known by the key's name


def annotated(shown: str) -> dict[str, str]:
    """Return the annotations of each key, sorted, in what ``javap -v`` shows of a class."""
    found: dict[str, list[str]] = {}
    fields = re.split(r"\n(?=  \S)", shown)
    for field in fields:
        lines = field.splitlines()
        if not lines or not _FIELD.match(lines[0]):
            continue
        key = next((match[1] for line in lines if (match := _KEY.match(line))), None)
        if key is None:
            continue
        each = found.setdefault(key, [])
        for line in lines:
            if match := _ANNOTATION.match(line):
                each.append(match[1])
            elif each and (match := _MEMBER.match(line)):
                each[-1] = _with_member(each[-1], *match.groups())
    return {key: " ".join(sorted(set(each) - _WITHOUT_MEANING)) for key, each in found.items()}


def _with_member(annotation: str, name: str, value: str) -> str:
    """Return an annotation with what one of its members says of values: which texts, or which classes."""
    if name == "includeZero":
        said = name
    elif name == "acceptedValues":
        said = " ".join(re.findall(r'"([^"]*)"', value))
    elif annotation.startswith("IsImplementationOfClass"):
        return annotation  # whether it does is known where the class is
    else:
        said = " ".join(
            re.sub(r".*[/$]", "", each).removesuffix("Validator") for each in re.findall(r"L([^;]+);", value)
        )
    return f"{annotation[:-1]} {said})" if annotation.endswith(")") else f"{annotation}({said})"


def keys_of(client: Path, server: Path) -> dict[str, tuple[str, Any]]:
    """Return the annotations and the default of each key, from the jars of storm-client and storm-server."""
    found: dict[str, str] = {}
    for name in CLASSES:
        words = ["javap", "-v", "-cp", f"{client}:{server}", name]
        found.update(annotated(subprocess.run(words, check=True, capture_output=True, text=True).stdout))
    with zipfile.ZipFile(client) as jar:
        defaults = yaml.safe_load(jar.read("defaults.yaml"))
    return {key: (found.get(key, ""), defaults.get(key)) for key in sorted({*found, *defaults})}


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    lines = [f"{json.dumps(key)}: {json.dumps(about)}" for key, about in keys_of(*map(Path, sys.argv[1:])).items()]
    KEYS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    sys.stdout.write(f"{KEYS}: {len(lines)} keys\n")

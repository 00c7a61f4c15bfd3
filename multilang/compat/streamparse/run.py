"""The command ``streamparse_run MODULE.CLASS``, which runs one task."""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from multilang.compat.pystorm.component import serializers
from multilang.component.base import Component

RESOURCES_PATH = "resources"


def main() -> None:
    """Run the command; see the module."""
    parser = argparse.ArgumentParser(description="Run a bolt or a spout as the process of one task.")
    parser.add_argument("target_class", help="its class, as module.Class")
    parser.add_argument("-s", "--serializer", choices=serializers(), default="json", help="only json can be run")
    words = sys.argv[1].split() if len(sys.argv) == 2 else sys.argv[1:]  # Storm gives all words as one
    options = parser.parse_args(words)
    module, _, name = options.target_class.rpartition(".")
    folder = os.getcwd()
    inner = os.path.join(folder, RESOURCES_PATH)  # from Storm 1.0.3 on
    if os.path.isfile(os.path.join(inner, *module.split(".")) + ".py"):
        folder = inner
    sys.path.append(folder)
    kind = getattr(importlib.import_module(module), name)
    component = kind() if issubclass(kind, Component) else kind(serializer=options.serializer)
    component.run()


if __name__ == "__main__":
    main()

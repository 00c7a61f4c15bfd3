"""The workloads of another library's child on this project's layer: `python layer.py pystorm split`."""

import runpy
import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    library = sys.argv.pop(1)
    sys.modules[library] = import_module(f"multilang.compat.{library}")
    child = {"pystorm": "pystorm_child.py", "storm": "stormpy_child.py"}[library]
    runpy.run_path(str(Path(__file__).with_name(child)), run_name="__main__")

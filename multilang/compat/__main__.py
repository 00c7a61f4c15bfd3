"""Run a program that imports storm, pystorm or streamparse: ``python -m multilang.compat splitsentence.py ARGUMENT...``."""

from __future__ import annotations

import os
import sys

from multilang.compat.names import provide


def main() -> None:
    """Run the command; see the module."""
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: python -m multilang.compat PROGRAM.py [ARGUMENT]...")
    from runpy import run_path

    provide()
    del sys.argv[0]
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
    run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()

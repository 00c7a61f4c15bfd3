"""Run the process of one task of a topology: ``python -m multilang.component MODULE:NAME [--submitted FILE]``.

All tasks of a topology have the same command, which names the topology's place; the handshake names the task's
component. FILE describes the topology that was submitted (topology.identity).
"""

from __future__ import annotations

import sys

from multilang.child.process import run_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.component.base import Component
    from multilang.component.context import Context


def main() -> None:
    """Run the command; see the module."""
    if sys.argv[2:3] not in ([], ["--submitted"]) or len(sys.argv) not in (2, 4) or sys.argv[1].startswith("-"):
        sys.exit("usage: python -m multilang.component MODULE:NAME  (as wordcount:topology, or file.py:topology)")
    target, *submitted = sys.argv[1:]

    def find(context: Context) -> Component:
        from multilang.child.find import find_component

        return find_component(target, context, _read(submitted[1]) if submitted else None)

    run_process(find)


def _read(path: str) -> Any:
    from multilang.protocol.codec import loads

    with open(path, encoding="utf-8") as file:
        return loads(file.read())


if __name__ == "__main__":
    main()

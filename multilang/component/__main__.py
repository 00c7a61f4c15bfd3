"""Run the process of one task of a topology: ``python -m multilang.component MODULE:NAME``.

Every task of a topology is started by the same command, which names the place of the topology; the handshake says which
component this task is.
"""

from __future__ import annotations

import sys

from multilang.component.process import run_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.component.base import Component
    from multilang.component.context import Context


def main() -> None:
    """Run the command; see the module."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: python -m multilang.component MODULE:NAME  (as wordcount:topology, or file.py:topology)")
    target = sys.argv[1]

    def find(context: Context) -> Component:
        from multilang.component.find import find_component

        return find_component(target, context)

    run_process(find)


if __name__ == "__main__":
    main()

"""The ``multilang`` command: run and show topologies. Needs the extra ``cli`` (click and rich)."""

from __future__ import annotations

import sys

from multilang.cli.exits import UNAVAILABLE


def main() -> int:
    """Run the command and return its exit status. If the extra is missing, print how to install it."""
    try:
        import click  # noqa: F401 - only asked for, so that the line below is all that a user sees
        import rich  # noqa: F401
    except ModuleNotFoundError as error:
        print(
            f"multilang: the command needs the package {error.name}; "
            "install the extra: pip install 'storm-multilang[cli]'",
            file=sys.stderr,
        )
        return UNAVAILABLE
    from multilang.cli.app import run_app

    return run_app(sys.argv[1:])

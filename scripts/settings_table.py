#!/usr/bin/env python3
"""Write the tables of docs/configuration.md that have this library's keys, from the rows of ``multilang.settings``."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "configuration.md"


def with_tables(page: str) -> str:
    """Return the page with its tables as they are to be."""
    from multilang.settings import SET_HERE, SETTINGS, Setting

    def default(row: Setting) -> str:
        if row.default is None:
            return row.otherwise
        return f"`{row.default if isinstance(row.default, str) else json.dumps(row.default)}`"

    settings = ["| key | default | read by | |", "| --- | --- | --- | --- |"]
    settings += [f"| `{row.key}` | {default(row)} | {row.reader} | {row.text} |" for row in SETTINGS.values()]
    set_here = ["| key | read by | set |", "| --- | --- | --- |"]
    set_here += [f"| `{row.key}` | {row.reader} | {row.text} |" for row in SET_HERE.values()]
    for name, lines in (("settings", settings), ("set here", set_here)):
        begin, end = f"<!-- {name}: scripts/settings_table.py writes this table -->", "<!-- end -->"
        table = "\n".join([begin, "", *lines, "", end])
        page, found = re.subn(rf"{re.escape(begin)}\n.*?{end}", lambda _, table=table: table, page, flags=re.DOTALL)
        if found != 1:
            raise ValueError(f"{PAGE} has not one place for the table of {name}: {begin}")
    return page


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

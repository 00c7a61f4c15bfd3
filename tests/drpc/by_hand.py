"""The topology that docs/coordination.md wires by hand, as it is there."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "coordination.md"
_CODE = re.search(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
assert _CODE is not None
exec(compile(_CODE[1].partition("\nwith LocalDRPC")[0], str(PAGE), "exec"), globals())

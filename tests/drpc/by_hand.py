"""The topology that docs/drpc.md wires by hand, as it is there."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "drpc.md"
_SECTION = PAGE.read_text(encoding="utf-8").partition("\n## Coordination by hand\n")[2]
_CODE = re.search(r"^```python\n(.*?)^```", _SECTION, re.S | re.M)
assert _CODE is not None
exec(compile(_CODE[1].partition("\nwith LocalDRPC")[0], str(PAGE), "exec"), globals())

"""The provider of files that docs/state-providers.md writes out, as it is there."""

from __future__ import annotations

import re
from pathlib import Path

from multilang.state import StateProvider

PAGE = Path(__file__).parents[2] / "docs" / "state-providers.md"
_CODE = re.search(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
assert _CODE is not None
exec(compile(_CODE[1], str(PAGE), "exec"), globals())

FilesProvider: type[StateProvider]

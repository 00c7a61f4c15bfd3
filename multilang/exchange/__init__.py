"""Exchange by the block: tuples between two Python components travel in blocks of many.

``transform.by_blocks`` changes a topology before it is submitted; ``child`` connects a component in its process to the
changed streams, so that its code sees nothing of it. See docs/exchange.md.
"""

from __future__ import annotations

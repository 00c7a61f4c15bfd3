"""Exchange by the block: tuples between two Python components travel in blocks of many.

``transform.by_blocks`` changes a topology before it is submitted; ``child`` connects a component in its process to the
changed streams, without a change of its code. See docs/exchange.md.
"""

from __future__ import annotations

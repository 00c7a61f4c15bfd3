"""A live page of running topologies: their graph, figures, curves and errors, in a browser.

A run shows itself by ``RunPage``; its page is served by a process of its own, so that nobody's browser slows a task
down. ``multilang page`` shows the topologies of a cluster. Needs the extra ``page``.
"""

from __future__ import annotations

from multilang.helpers.lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.page.host import RunPage

__all__ = ["RunPage"]

__getattr__, __dir__ = lazily(__name__, {".host": ("RunPage",)})

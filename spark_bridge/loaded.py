"""The modules of an executor's Python process, which the garbage collector need not look through again and again."""

from __future__ import annotations

import gc

_frozen = False


def freeze_once() -> None:
    """Have the garbage collector leave alone what is alive at the first call in this process, which is mostly modules.

    Spark's Python workers collect garbage behind each task: to look through all loaded modules takes 15 ms of a core, more than
    most tasks of a small job. To be called in executors alone, where a task begins.
    """
    global _frozen
    if not _frozen:
        _frozen = True
        gc.freeze()

"""The steps of transactions, traced by the function that the conf names in ``multilang.trace``.

It is called as at the steps of a checkpoint: with who does the step, the step, and the txid (-1: none). It can watch the
steps, or make one fail.

``coordinator``:

- ``CLAIM look``, ``CLAIM claim``, ``CLAIM claimed``: before it looks who owns the transactions; before it raises the
  epoch; after that, before anything is read.
- ``BEGIN write``, ``BEGIN written``: around each write of the metadata of transactions that are to begin, and of the
  last commit. The txid is the first one that is not committed.
- ``BEGIN emit``, ``BEGIN emitted``: around a batch's tuple. ``COMMIT emit``, ``COMMIT emitted``: around its commit's
  tuple.
- ``BEGIN acked``, ``COMMIT acked``: a phase is over in all tasks.

``emitter-0``, by the index of the spout's task:

- ``CLAIM look``, ``CLAIM claim``, ``CLAIM claimed``: as above, for the task's partitions, when the first batch of an
  epoch comes.
- ``BATCH emit``, ``BATCH emitted``: around the emission of its part of a batch. With a partitioned spout that is not
  opaque, ``BATCH write`` and ``BATCH written`` come between the two, around the write of what is in the batch.
- ``COMMIT write``, ``COMMIT written``: around an opaque spout's write of where a batch ended.

``COMPONENT-0``, a committer, by its component and the index of its task:

- ``COMMIT finish``, ``COMMIT finished``: around ``finish_batch`` in the commit phase.
- ``COMMIT read``, ``COMMIT put``, ``COMMIT done``: within that, for a map that is an attribute of the bolt or of its
  class: before the map is read, before the changes are compared and put, and after that.
"""

from __future__ import annotations

from multilang.state.steps import Steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def steps_of(conf: Mapping[str, Any], who: str) -> Steps:
    """Return the tracer of one task's steps.

    Raises:
        ConfigError: The conf names something that is no function.
    """
    return Steps(conf, who)

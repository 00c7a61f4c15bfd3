"""The steps of a protocol, traced by the function that the conf names in ``multilang.trace``: to watch them, or to make one fail.

The function gets the task, the step, and the txid (-1: none). The steps of a transaction, by the task that takes them:

``coordinator``:

- ``CLAIM look``, ``CLAIM claim``, ``CLAIM claimed``: before it reads the owner of the transactions; before it raises the
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
  opaque, ``BATCH write`` and ``BATCH written`` come between the two, around the write of the batch's metadata.
- ``COMMIT write``, ``COMMIT written``: around an opaque spout's write of the end of a batch.

``COMPONENT-0``, a committer, by its component and the index of its task:

- ``COMMIT finish``, ``COMMIT finished``: around ``finish_batch`` in the commit phase.
- ``COMMIT read``, ``COMMIT put``, ``COMMIT done``: within that, for a map that is an attribute of the bolt or of its
  class: before the map is read, before the changes are compared and put, and after that.
"""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.helpers.dotted import by_dotted_name
from multilang.settings import TRACE, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from multilang.state.api import State


class Steps:
    """A callable that reports the steps of one namespace, as ``PREPARE write`` with the transaction.

    Args:
        conf: The conf that names the function.
        namespace: The namespace, which is the function's first argument.
    """

    def __init__(self, conf: Mapping[str, Any], namespace: str) -> None:
        self._tell = traced(conf)
        self._namespace = namespace
        self._what = ""
        self._txid = -1

    def at(self, what: str, txid: int) -> None:
        """Set the action and the transaction that the next steps belong to."""
        self._what = what
        self._txid = txid

    def __call__(self, step: str) -> None:
        if self._tell is not None:
            self._tell(self._namespace, f"{self._what} {step}", self._txid)

    def watch(self, state: State) -> None:
        """Report the steps of the state and of its store, too."""
        if self._tell is not None:
            state.trace = self
            if hasattr(state, "store"):
                state.store.trace = self


def traced(conf: Mapping[str, Any]) -> Callable[[str, str, int], None] | None:
    """Return the function that the conf names; None if it names none.

    Raises:
        ConfigError: There is no function of that name.
    """
    name = value(conf, TRACE)
    if name is None:
        return None
    try:
        function: Callable[[str, str, int], None] = by_dotted_name(name)
    except (ImportError, AttributeError, TypeError, ValueError) as problem:
        raise ConfigError(f"{TRACE} {name!r} can't be imported: {problem}") from problem
    if not callable(function):
        raise ConfigError(f"{TRACE} {name!r} is {function!r}; use a function by its dotted name")
    return function

"""The note of a state's transactions in a store of marks, beside the progress of a group (see ``multilang.state.witness``)."""

from __future__ import annotations

from multilang.protocol.codec import dumps, loads
from multilang.store.settings import may_return, owner_of
from spark_bridge.sources.identity import Mark
from spark_bridge.sources.store import GROUP, Marks, marks_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from multilang.store.interface import Store

_PARTITION = 0


class MarkNotes:
    """One text in a store of marks.

    Args:
        conf: The spout's conf.
        store: The store.
    """

    def __init__(self, conf: Mapping[str, Any], store: Store) -> None:
        self._conf = conf
        self._store = store
        # No group of a spout: what follows its "/" is the name of a component.
        self._marks = Marks(store, f"$checkpoints:{owner_of(conf)[1]}")
        self._count = 0

    def claim(self, warn: Callable[[str], None]) -> str | None:
        """Claim the note, and return its text; None if there is none."""
        self._marks.claim([_PARTITION], *owner_of(self._conf), warn, may_return(self._conf))
        found = self._marks.load().get(_PARTITION)
        if found is None or not found.source:
            return None
        self._count = found.watermark
        return dumps(found.source["note"])

    @property
    def token(self) -> str:
        """A text that tells the store from every other."""
        return self._store.url

    def owner_token(self) -> str:
        """Return the same: a file is known by its path."""
        return self.token

    def save(self, text: str) -> None:
        """Replace the text."""
        self._put({"note": loads(text)})

    def remove(self) -> None:
        """Remove the text."""
        self._put({})

    def describe(self) -> str:
        """Return the place of the store in the words of a message."""
        return f"the progress of sources in {self._store.describe()}"

    def close(self) -> None:
        """Release the note."""
        self._marks.release()
        self._store.close()

    def _put(self, source: dict[str, Any]) -> None:
        self._count += 1
        self._marks.save({_PARTITION: Mark(self._count, None, source)})


class MarkNotesOpener:
    """Opens the note in a spout's store of marks.

    Args:
        store: The spout's store; None: the one that the conf names.
        group: The group of the spout; None: the one that the conf names.
    """

    def __init__(self, store: Store | str | None, group: str | None) -> None:
        self._store = store
        self._group = group

    def __call__(self, conf: Mapping[str, Any]) -> MarkNotes | None:
        """Return the note; None if no later run goes on with what is kept."""
        if not (self._group or conf.get(GROUP)):
            return None
        return MarkNotes(conf, marks_store(self._store, conf))

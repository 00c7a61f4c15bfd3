"""pystorm's bolts."""

from __future__ import annotations

import re
from collections import defaultdict, namedtuple
from time import monotonic

from multilang.compat.pystorm.component import Component, Tuple, link_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NO_IDENTIFIER = re.compile(r"\W|^(?=\d)")


class Bolt(Component):
    """A bolt: define ``process``.

    Attributes:
        auto_anchor: Whether emits are anchored to the tuple in process unless ``anchors`` is given.
        auto_ack: Whether a tuple is acked when ``process`` returns.
        auto_fail: Whether a tuple fails when ``process`` raises.
    """

    auto_anchor: bool = True
    auto_ack: bool = True
    auto_fail: bool = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._source_tuple_types: dict[str, dict[str, Any]] = defaultdict(dict)

    @property
    def _current_tups(self) -> Any:
        """The tuple, or the batch, in process."""
        inside = self._multilang
        return inside.tups if inside.link is None else inside.link.state.current

    @_current_tups.setter
    def _current_tups(self, tups: Any) -> None:
        inside = self._multilang
        if inside.link is None:
            inside.tups = tups
        else:
            inside.link.state.current = tups

    @staticmethod
    def is_tick(tup: Any) -> bool:
        """Return whether a tuple is a tick."""
        return bool(tup.component == "__system" and tup.stream == "__tick")

    def process(self, tup: Any) -> None:
        """Work on one tuple."""
        raise NotImplementedError(f"{type(self).__name__} has no process method: define process(self, tup)")

    def process_tick(self, tup: Any) -> None:
        """Work at a tick, every ``topology.tick.tuple.freq.secs`` seconds."""

    def emit(  # type: ignore[override]  # pystorm's
        self,
        tup: Any,
        stream: Any = None,
        anchors: Any = None,
        direct_task: Any = None,
        need_task_ids: bool = False,
    ) -> Any:
        """Send a tuple.

        Args:
            tup: The values, a list or a tuple.
            stream: The stream's name; None is the default stream.
            anchors: The tuples, or their ids, that it depends on; None: those in process, with ``auto_anchor``.
            direct_task: The only task that it goes to.
            need_task_ids: Wait for the ids of the tasks that it goes to.

        Returns:
            The task ids with ``need_task_ids``, otherwise None.
        """
        link = self._multilang.link
        if link is not None and link.sends_itself:
            return link.emit(tup, stream, anchors, direct_task, need_task_ids)
        if anchors is None:
            anchors = self._current_tups if self.auto_anchor else []
        ids = [anchor.id if isinstance(anchor, Tuple) else anchor for anchor in anchors]
        return super().emit(tup, stream=stream, anchors=ids, direct_task=direct_task, need_task_ids=need_task_ids)

    def ack(self, tup: Any) -> None:
        """Ack a tuple, or the one with this id."""
        self.send_message({"command": "ack", "id": tup.id if isinstance(tup, Tuple) else tup})

    def fail(self, tup: Any) -> None:
        """Fail a tuple, or the one with this id."""
        self.send_message({"command": "fail", "id": tup.id if isinstance(tup, Tuple) else tup})

    def read_tuple(self) -> Any:
        """Return the next tuple."""
        command = self.read_command()
        source, stream, values = command["comp"], command["stream"], command["tuple"]
        kind = self._source_tuple_types[source].get(stream)
        return Tuple(command["id"], source, stream, command["task"], tuple(values) if kind is None else kind(*values))

    def _run(self) -> None:
        tup = self.read_tuple()
        self._current_tups = [tup]
        if self.is_heartbeat(tup):
            self.send_message({"command": "sync"})
        else:
            (self.process_tick if self.is_tick(tup) else self.process)(tup)
            if self.auto_ack:
                self.ack(tup)
        self._current_tups = []

    def _handle_run_exception(self, exc: BaseException) -> None:
        tups = self._current_tups
        if len(tups) == 1:
            self.raise_exception(exc, tups[0])
            if self.auto_fail and _is_open(self, tups[0]):
                self.fail(tups[0])
        elif self._multilang.link is not None:
            self.raise_exception(exc)

    def _setup_component(self, storm_conf: Any, context: Any) -> None:
        super()._setup_component(storm_conf, context)
        self._source_tuple_types = defaultdict(dict, value_types(context))


class BatchingBolt(Bolt):
    """A bolt that works on groups of tuples: define ``process_batch``, and ``group_key`` for more than one group.

    The groups are handed over at the tick after ``ticks_between_batches`` ticks, so that the conf needs
    ``topology.tick.tuple.freq.secs``.

    Attributes:
        ticks_between_batches: The number of ticks that pass before the one at which groups are handed over.
    """

    ticks_between_batches: int = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._batches: dict[Any, list[Any]] = defaultdict(list)
        self._tick_counter = 0
        self._current_key: Any = None

    def group_key(self, tup: Any) -> Any:
        """Return the key of the group that a tuple belongs to."""
        return None

    def process_batch(self, key: Any, tups: Any) -> None:
        """Work on a group of tuples."""
        raise NotImplementedError(
            f"{type(self).__name__} has no process_batch method: define process_batch(self, key, tups)"
        )

    def emit(self, tup: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """Send a tuple as Bolt.emit does, never waiting for task ids."""
        kwargs["need_task_ids"] = False
        return super().emit(tup, **kwargs)

    def process(self, tup: Any) -> None:
        self._batches[self.group_key(tup)].append(tup)

    def process_tick(self, tick_tup: Any) -> None:
        """Count a tick, and hand over all groups when they are due."""
        self._tick_counter += 1
        self.ack(tick_tup)
        if self._tick_counter > self.ticks_between_batches and self._batches:
            self.process_batches()
            self._tick_counter = 0

    def process_batches(self) -> None:
        """Hand over all groups now, and ack their tuples."""
        for key, batch in self._batches.items():
            self._current_tups = batch
            self._current_key = key
            self.process_batch(key, batch)
            if self.auto_ack:
                for tup in batch:
                    if _is_open(self, tup):
                        self.ack(tup)
            self._current_key = None
            self._batches[key] = []  # acked, whatever happens to the others
        self._batches = defaultdict(list)

    def _run(self) -> None:
        self._current_tups = [self.read_tuple()]
        tup = self._current_tups[0]
        if self.is_heartbeat(tup):
            self.send_message({"command": "sync"})
        else:
            (self.process_tick if self.is_tick(tup) else self.process)(tup)
        self._current_tups = []

    def _handle_run_exception(self, exc: BaseException) -> None:
        self.raise_exception(exc, self._current_tups)
        if not self.auto_fail:
            return
        failed = set()
        for key, batch in self._batches.items():
            if self.exit_on_exception or key == self._current_key:
                for tup in batch:
                    failed.add(tup.id)
                    if _is_open(self, tup):
                        self.fail(tup)
        for tup in self._current_tups:
            if tup.id not in failed and _is_open(self, tup):
                self.fail(tup)
        self._batches[self._current_key] = []
        self._current_key = None


class TicklessBatchingBolt(BatchingBolt):
    """A BatchingBolt whose groups are handed over every ``secs_between_batches`` seconds, without ticks.

    This happens between two tuples, in the component's own thread.
    """

    secs_between_batches: float = 2

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._multilang.due = monotonic() + self.secs_between_batches

    def process_tick(self, tick_tup: Any) -> None:
        """Ack a tick, which means nothing here."""
        self.ack(tick_tup)

    def _run(self) -> None:
        super()._run()
        if monotonic() >= self._multilang.due:
            self._multilang.due = monotonic() + self.secs_between_batches
            self.process_batches()


# ---- for what runs bolts ----


def value_types(context: Any) -> dict[str, dict[str, Any]]:
    """Return the class of a tuple's values by source and stream, from the handshake's context."""
    return {
        source: {stream: _value_type(source, stream, fields) for stream, fields in streams.items()}
        for source, streams in (context.get("source->stream->fields") or {}).items()
    }


def _value_type(source: str, stream: str, fields: Any) -> Any:
    name = f"{_NO_IDENTIFIER.sub('_', source.title())}{_NO_IDENTIFIER.sub('_', stream.title())}Tuple"
    return namedtuple(name, fields, rename=True)  # noqa: PYI024 - the fields are known only now


def _is_open(bolt: Bolt, tup: Any) -> bool:
    """Return whether a tuple may still be acked or failed; Storm halts the worker at the second time."""
    link = link_of(bolt)
    return link is None or bool(link.is_open(tup.id))

"""One round of a topology on Spark, in the form in which tasks get it: only data, pickled to the executors."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Literal

    from multilang.topology.model import Topology
    from multilang.transactional.attempt import TransactionAttempt
    from spark_bridge.job.layout import Layout
    from spark_bridge.job.sources import SourceReader
    from spark_bridge.job.stateful import Saving


class Job:
    """The data of one round.

    ``readers``: one for each source of the layout. ``outputs``: the streams that are wanted as results.
    ``keeps_states``: whether there may be another round, for which the states of bolts are kept. ``saving``: of a
    topology with stateful bolts. ``attempt``: the attempt to run, of a transactional topology. ``ends``: "" if other rounds of the same input may follow; "batch" if windows move on at its end; "input" if all windows end there.
    """

    def __init__(
        self,
        topology: Topology,
        conf: Mapping[str, Any],
        assignment: Mapping[int, str],
        layout: Layout,
        readers: Sequence[SourceReader],
        outputs: Collection[tuple[str, str]],
        *,
        seed: int,
        round: int,
        keeps_states: bool,
        saving: Saving | None = None,
        attempt: TransactionAttempt | None = None,
        ends: Literal["", "batch", "input"] = "",
    ) -> None:
        self.topology = topology
        self.conf = dict(conf)
        self.assignment = dict(assignment)
        self.layout = layout
        self.readers = list(readers)
        self.outputs = frozenset(outputs)
        self.seed = seed
        self.round = round
        self.keeps_states = keeps_states
        self.saving = saving
        self.attempt = attempt
        self.ends = ends

    def picked(
        self, worker: int, rows: Iterable[Any]
    ) -> Iterator[tuple[int | None, list[Any], str | None, int | None]]:
        """Return the rows that this round reads: offset (None: unreliable), values, stream and direct task."""
        reader, partition = self._reader(worker)
        return reader.read(partition, rows)

    def sums(self, worker: int) -> Sequence[int]:
        """Return the checksums of the rows that this worker read."""
        return self._reader(worker)[0].sums

    def _reader(self, worker: int) -> tuple[SourceReader, int]:
        """Return the reader of a worker at level 0, and the partition that it reads."""
        for source, reader in zip(self.layout.sources, self.readers, strict=True):
            if source.first <= worker < source.first + source.size:
                return reader, worker - source.first
        raise IndexError(worker)

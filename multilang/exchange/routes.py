"""The streams of a component that travel in blocks, as its process reads them from its conf, and the context without them."""

from __future__ import annotations

from random import Random

from multilang.component.context import Context
from multilang.exchange.names import STREAM
from multilang.protocol.codec import dumps
from multilang.protocol.outputs import Outputs
from multilang.settings import EDGES
from multilang.topology.groupings import Grouping, chooser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.topology.groupings.base import Chooser


class Route:
    """One output stream that travels in blocks.

    Attributes:
        name: Its name as JSON.
        arity: The number of its fields.
        choose: Chooses the tasks of a tuple that get it in a block.
        unread: Whether it has no subscriber.
        on_wire: Whether other tasks get its tuples one by one, too.
        overtakes: Whether one of these gets blocks, too, which a single tuple must not overtake.
    """

    __slots__ = ("arity", "choose", "name", "on_wire", "overtakes", "unread")

    def __init__(self, stream: str, arity: int, choosers: list[Chooser], on_wire: bool, overtakes: bool) -> None:
        self.name = dumps(stream)
        self.arity = arity
        self.choose: Chooser = choosers[0] if len(choosers) == 1 else _joined(choosers)
        self.unread = not choosers and not on_wire
        self.on_wire = on_wire
        self.overtakes = overtakes


def _joined(choosers: list[Chooser]) -> Chooser:
    return lambda values: [task for choose in choosers for task in choose(values)]


class Routes:
    """All of a task's streams, with their subscribers.

    Attributes:
        context: The task's context as the topology declares it, without blocks.
        outputs: The output streams as declared, for the checks of emits.
        by_stream: The routes of the streams that travel in blocks; None stands for the default stream.
        tasks: The tasks that get blocks.
        apart: Whether a block has only tuples that come of one tuple.
        careful: Whether the library chose larger blocks, which then must do no harm.
        overtaking: The other streams that a component with blocks reads.
    """

    def __init__(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        edges = conf[EDGES]
        own = Context(context)
        task = own.task
        self.context = Context(_declared(own, edges))
        components = self.context.task_component
        self.apart: bool = edges["apart"]
        self.careful: bool = edges.get("careful", False)
        self.outputs = Outputs()
        self.outputs.learn(self.context.component, components, self.context)
        by_wire = own.targets
        by_block = {target for targets in edges["out"].values() for target in targets}
        self.tasks = [id for id, component in components.items() if component in by_block]
        self.by_stream: dict[str | None, Route] = {}
        fields = self.context.output_fields
        for stream, targets in [*edges["out"].items(), *((stream, {}) for stream in edges["unread"])]:
            choosers = [
                _chooser(kind, own, stream, own.tasks(target), Random(f"{task} {stream} {target}"))
                for target, kind in targets.items()
            ]
            wired = set(by_wire.get(stream, ()))
            route = Route(stream, len(fields[stream]), choosers, bool(wired), bool(wired & by_block))
            self.by_stream[stream] = route
            if stream == "default":
                self.by_stream[None] = route
        self.overtaking: set[str | None] = {
            stream for stream, targets in by_wire.items() if stream != STREAM and by_block & set(targets)
        }
        if "default" in self.overtaking:
            self.overtaking.add(None)


def _chooser(kind: dict[str, Any], context: Context, stream: str, tasks: list[int], rng: Random) -> Chooser:
    return chooser(
        Grouping(kind["type"], kind.get("fields", ())),
        context.output_fields[stream],
        tasks,
        source_task=context.task,
        local_tasks=tasks,
        rng=rng,
        component=context.component,
        stream=stream,
    )


def _declared(context: Context, edges: dict[str, Any]) -> dict[str, Any]:
    """Return a context with the subscriptions as they were declared."""
    targets = {stream: dict(found) for stream, found in context.targets.items() if stream != STREAM}
    for stream, found in edges["out"].items():
        for target, kind in found.items():
            targets.setdefault(stream, {})[target] = Grouping(kind["type"], kind.get("fields", ())).to_wire()
    sources = {
        source: {stream: kind for stream, kind in found.items() if stream != STREAM}
        for source, found in context.sources.items()
    }
    for source, groupings in edges["in"].items():
        sources.setdefault(source, {}).update(groupings)
    return {
        **context,
        "streams": [stream for stream in context.streams if stream != STREAM],
        "stream->outputfields": _without(context.output_fields),
        "stream->target->grouping": targets,
        "source->stream->grouping": sources,
        "source->stream->fields": {source: _without(streams) for source, streams in context.source_fields.items()},
    }


def _without(streams: dict[str, Any]) -> dict[str, Any]:
    return {stream: fields for stream, fields in streams.items() if stream != STREAM}

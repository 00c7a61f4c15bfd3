"""The specs of components of this library's own, which may stand beside streamparse's in a topology of the DSL."""

from __future__ import annotations

from multilang.compat.streamparse.dsl.bolt import ShellBoltSpec
from multilang.compat.streamparse.dsl.spout import ShellSpoutSpec
from multilang.compat.streamparse.dsl.stream import Stream
from multilang.component.base import Component
from multilang.component.spout import Spout
from multilang.component.streams import declared_streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RUN = "streamparse_run"
"""The command of streamparse's that runs a class as the process of one task."""


def spec(kind: Any, name: Any = None, inputs: Any = None, par: Any = None, config: Any = None) -> Any:
    """Return the spec of a component for a topology of the DSL, whichever library the component's class is of.

    >>> count = spec(CountBolt, inputs=[words], par=2)

    Args:
        kind: The class: one of this library's or of streamparse's.
        name: The component's name; None is that of the attribute.
        inputs: What a bolt subscribes to.
        par: The number of tasks, or a number for each environment; None is the class's own ``par``, or 1.
        config: The component's conf; None is the class's own.
    """
    if not issubclass(kind, Component):
        return kind.spec(name=name, par=par, config=config, **({} if inputs is None else {"inputs": inputs}))
    streams = declared_streams(kind.output_fields, kind.output_streams)
    outputs = [Stream(list(of.fields), stream, of.direct) for stream, of in streams.items()]
    par = getattr(kind, "par", 1) if par is None else par
    config = dict(kind.component_conf) if config is None else config
    place = f"{kind.__module__}.{kind.__name__}"
    if issubclass(kind, Spout):
        return ShellSpoutSpec(kind, name, RUN, place, None, par, config, outputs)
    return ShellBoltSpec(kind, name, RUN, place, inputs, par, config, outputs)

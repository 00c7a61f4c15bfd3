"""Ordinary components of this library around components of streamparse's, with what their classes declare."""

from __future__ import annotations

import json

from multilang.compat.pystorm import running
from multilang.compat.streamparse.dsl.component import conf_of, streams_of
from multilang.compat.streamparse.storm.component import Component
from multilang.component.streams import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


def adapted(
    given: Any,
    output_fields: Sequence[str] | None = None,
    output_streams: Mapping[str, Sequence[str] | Stream] | None = None,
) -> Any:
    """Return a component of this library that runs one of streamparse's.

    >>> builder.set_bolt("count", adapted(CountBolt)).fields_grouping("split", "word")

    Args:
        given: The class, of which each task makes its own instance, or an instance. One of this library's own is returned as it
            is, with the fields and streams given here.
        output_fields: The fields of the default stream. Without them and ``output_streams`` the class's ``outputs`` count, and
            its ``config`` is the component's own conf.
        output_streams: Further streams by name.

    Raises:
        ConfigError: It is neither a bolt nor a spout.
    """
    kind = given if isinstance(given, type) else type(given)
    if output_fields is not None or output_streams or not issubclass(kind, Component):
        return running.adapted(given, output_fields, output_streams)
    streams = {name: Stream(of.output_fields, of.direct) for name, of in streams_of(kind.outputs).items()}
    default: Any = streams.pop("default", None)
    component = running.adapted(given, default, streams)
    component.component_conf = json.loads(conf_of(kind.config))
    return component

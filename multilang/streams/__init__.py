"""Streams: topologies written as operations on streams, map, filter, count, instead of classes and groupings.

    s = StreamBuilder()
    words = s.source(["the cow", "the moon"]).flat_map(str.split)
    words.key_by(lambda word: word).count().for_each(print)
    topology = s.build("word-count")

``build`` gives an ordinary topology, which runs wherever any other does.
"""

from __future__ import annotations

from multilang.helpers.lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.streams.builder import StreamBuilder
    from multilang.streams.stream import KeyedStream, Stream

__all__ = ["KeyedStream", "Stream", "StreamBuilder"]

__getattr__, __dir__ = lazily(
    __name__,
    {
        ".builder": ("StreamBuilder",),
        ".stream": ("KeyedStream", "Stream"),
    },
)

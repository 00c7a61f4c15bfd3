"""Counts the words of real text, written as streams: the same answer as ``word_count.py``, without a class.

    multilang run examples/stream_words.py --until-drained --top count:key:value
    multilang show examples/stream_words.py

The functions run in the tasks' processes, which find them, lambdas as well, by importing this file.
"""

from __future__ import annotations

from pydoc_data.topics import topics

from multilang.streams import StreamBuilder

s = StreamBuilder()
lines = s.source(lambda: (line for name in sorted(topics) for line in topics[name].splitlines()), name="lines")
words = (
    lines.filter(str.strip, name="with-text")
    .repartition(2, name="spread")
    .flat_map(lambda line: line.lower().split(), name="split")
    .map(lambda word: word.strip(".,:;!?\"'`()[]{}<>*=-_|"))
    .filter(len)
)
words.key_by(lambda word: word).count()
topology = s.build("stream-words", conf={"topology.max.spout.pending": 500})

"""Streams as a user with mypy --strict writes them; checked, not run, by test_types.py."""

from __future__ import annotations

from typing_extensions import assert_type

from multilang import ReliableSpout, Tuple
from multilang.streams import KeyedStream, Stream, StreamBuilder
from multilang.windowing import Tumbling, seconds


class Sentences(ReliableSpout):
    output_fields = ["sentence"]


s = StreamBuilder()
tuples = s.source(Sentences, parallelism=2)
assert_type(tuples, Stream[Tuple])
numbers = s.source([1, 2, 3])
assert_type(numbers, Stream[int])
assert_type(s.source(lambda: ["a"]), Stream[str])
words = s.source(["the cow"]).flat_map(str.split)
assert_type(words, Stream[str])
keyed = words.key_by(len)
assert_type(keyed, KeyedStream[int, str])
assert_type(keyed.map_values(str.encode), KeyedStream[int, bytes])
assert_type(keyed.count(), KeyedStream[int, int])
assert_type(keyed.map(lambda pair: pair[1]), Stream[str])


async def looked_up(word: str) -> bytes:
    return word.encode()


assert_type(words.map_async(looked_up, limit=5), Stream[bytes])
assert_type(words.key_by(lambda w: (w, 1)).count(), KeyedStream[tuple[str, int], int])


def total(acc: float, value: str) -> float:
    return acc + len(value)


assert_type(keyed.aggregate(float, total), KeyedStream[int, float])
windows = keyed.window(Tumbling(seconds(60)), timestamp=len)
assert_type(windows.group().with_end(), KeyedStream[int, tuple[int, list[str]]])
joined = windows.left_join(numbers.key_by(abs).window(Tumbling(seconds(60)), timestamp=abs))
assert_type(joined.map_values(lambda pair: pair), KeyedStream[int, tuple[str, int | None]])
table = keyed.update_state(float, total)
assert_type(numbers.key_by(abs).state_query(table), KeyedStream[int, tuple[int, float | None]])

"""Streams that mypy --strict refuses; each line names the error that mypy must report."""

from multilang.streams import StreamBuilder
from multilang.windowing import Tumbling, seconds

s = StreamBuilder()
words = s.source(["the cow"])
numbers = s.source([1, 2])


def half(number: float) -> float:
    return number / 2


words.map(half)  # E: arg-type
words.map_async(half)  # E: arg-type
words.filter(half)  # E: arg-type
words.flat_map(len)  # E: arg-type
words.key_by(list)  # E: type-var
numbers.key_by(half)  # E: type-var
words.merge(numbers)  # E: arg-type
words.count()  # E: attr-defined
words.window(Tumbling(5))  # E: attr-defined
keyed = words.key_by(len)
keyed.reduce(half)  # E: arg-type
keyed.map_values(half)  # E: arg-type
keyed.merge(numbers)  # E: arg-type
keyed.window(seconds(5))  # E: arg-type
keyed.window(Tumbling(5)).join(keyed)  # E: arg-type
keyed.state_query(keyed)  # E: arg-type

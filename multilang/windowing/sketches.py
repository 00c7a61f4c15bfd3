"""Aggregates that estimate results whose exact computation would be expensive (the extra ``storm-multilang[sketches]``)."""

from __future__ import annotations

from functools import cache

from multilang.component.errors import ConfigError
from multilang.helpers.extras import imported
from multilang.windowing.aggregates import Aggregate, checked_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.protocol.messages import Tuple


@cache
def _datasketches() -> Any:
    return imported("datasketches", "sketches", "ApproximateDistinct", on_workers=True)


class ApproximateDistinct(Aggregate):
    """An estimate of the number of different values of a field, as a whole number.

    It stores a HyperLogLog sketch: 4 KB at most for each window and key, however many values there are. The standard
    error is 1.6 % at the default precision, and up to some 200 values the number is exact. The estimate does not depend
    on the order of the values and of merges.

    Args:
        field: The field, whose values are strings, numbers, booleans or None.
        precision: The base-2 logarithm of the sketch's size in bytes, from 4 to 21. The standard error is 1.04 divided by
            the square root of that size.

    Raises:
        ConfigError: The precision is none, or the package datasketches is not installed.
    """

    def __init__(self, field: str, precision: int = 12) -> None:
        if type(precision) is not int or not 4 <= precision <= 21:
            raise ConfigError(f"ApproximateDistinct needs a precision from 4 to 21, not {precision!r}")
        self.field = checked_field(type(self).__name__, field)
        self.precision = precision
        _datasketches()

    def init(self) -> Any:
        return _datasketches().hll_sketch(self.precision, _datasketches().tgt_hll_type.HLL_8)

    def add(self, accumulator: Any, tup: Tuple) -> Any:
        value = tup[self.field]
        if not isinstance(value, str):
            if isinstance(value, (bool, float)) and value == value // 1:
                value = int(value)  # the same value to Python, and to Distinct
            value = f"\0{value!r}"  # 1 is not "1"
        accumulator.update(value)
        return accumulator

    def merge(self, first: Any, second: Any) -> Any:
        union = _datasketches().hll_union(self.precision)
        union.update(first)
        union.update(second)
        return union.get_result(_datasketches().tgt_hll_type.HLL_8)

    def result(self, accumulator: Any) -> int:
        # The estimate of a sketch that was never merged depends on the order of the values.
        estimate: float = self.merge(accumulator, accumulator).get_estimate()
        return round(estimate)

    def save(self, accumulator: Any) -> str:
        from base64 import b64encode

        return b64encode(accumulator.serialize_compact()).decode("ascii")

    def load(self, saved: Any) -> Any:
        from base64 import b64decode

        return _datasketches().hll_sketch.deserialize(b64decode(saved))

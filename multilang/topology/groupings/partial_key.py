"""Partial-key grouping: each key has two tasks, and the less used one gets the tuple (Storm's PartialKeyGrouping).

It balances skewed keys; a key's total must then be summed up downstream from two tasks. A key has the same two tasks as
in Storm: they come from ``java.util.Random`` with the key's hash as seed, so that every source task chooses the same
two.
"""

from __future__ import annotations

from multilang.topology.groupings.base import Grouping, always
from multilang.topology.groupings.fields import java_fields
from multilang.topology.javahash import java_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from multilang.topology.groupings.base import Chooser, Tasks
    from multilang.topology.groupings.own import GroupingContext

_MULTIPLIER = 0x5DEECE66D  # java.util.Random is a 48-bit linear congruential generator
_MASK = (1 << 48) - 1
_CACHED_KEYS = 65536
_CLASS = "org.apache.storm.grouping.PartialKeyGrouping"


class PartialKeyGrouping(Grouping):
    """Sends each tuple to the less used of its key's two tasks: a fields grouping that balances skewed keys.

    To Storm it is a custom grouping, of one of Storm's own classes.
    """

    __slots__ = ()

    type = "partial_key"
    storm_method = "customGrouping"
    is_trusted = True

    def choose_by(self, context: GroupingContext, tasks: Tasks) -> Chooser:
        return always(tasks) if len(tasks) == 1 else _less_used(self.positions(context.fields), tasks)

    def to_flux(self, parts: str) -> str:
        import json

        arguments = f"[{{ref: {json.dumps(parts)}}}]"
        return f'type: CUSTOM, customClass: {{className: "{_CLASS}", constructorArgs: {arguments}}}'

    def flux_parts(self, id: str) -> list[str]:
        import json

        return [  # Flux makes Fields of names only as a component
            f"  - id: {json.dumps(id)}",
            '    className: "org.apache.storm.tuple.Fields"',
            f"    constructorArgs: [{json.dumps(self.fields)}]",
        ]

    def to_thrift(self, types: Any) -> Any:
        return types.Grouping(custom_object=types.JavaObject(full_class_name=_CLASS, args_list=[]))

    def to_java(self, source: str) -> str:
        return f"{self.storm_method}({source}, new PartialKeyGrouping({java_fields(self.fields)}))"

    def refused_by_thrift(self, source_fields: Sequence[str]) -> str | None:
        # PartialKeyGrouping's constructor with fields takes an object, and Thrift's JavaObject has only plain
        # arguments. Without arguments, the first field is the key.
        if self.fields == tuple(source_fields[:1]):
            return None
        return (
            f"by partial key {', '.join(self.fields)}; over Thrift the key is the stream's first field, which is "
            f"{source_fields[0]!r}. Declare the key first, or submit the topology with Flux (multilang flux)"
        )


def two_tasks(hashes: Sequence[int], n: int) -> tuple[int, int]:
    """Return the indexes, below ``n``, of the two tasks for the key whose fields have these hashes."""
    seed = 1
    for hash_ in hashes:
        for byte in hash_.to_bytes(4, "big", signed=True):
            seed = (31 * seed + (byte - 256 if byte > 127 else byte)) & 0xFFFFFFFF
    random = _JavaRandom(seed - (1 << 32) if seed >> 31 else seed)
    first = random.below(n)
    second = random.below(n)
    return first, (second + 1) % n if first == second else second


def _less_used(indexes: Sequence[int], tasks: Tasks) -> Chooser:
    """Return one source task's choosing function for a key that consists of the values at ``indexes``."""
    pairs: dict[tuple[int, ...], tuple[int, int]] = {}
    load = [0] * len(tasks)  # tuples sent so far, counted for each source task, as in Storm's BalancedTargetSelector
    answers = [(task,) for task in tasks]

    def choose(values: Sequence[Any]) -> Sequence[int]:
        hashes = tuple([java_hash(values[index]) for index in indexes])
        pair = pairs.get(hashes)
        if pair is None:
            if len(pairs) >= _CACHED_KEYS:
                pairs.clear()
            pair = pairs[hashes] = two_tasks(hashes, len(tasks))
        first, second = pair
        chosen = second if load[second] < load[first] else first
        load[chosen] += 1
        return answers[chosen]

    return choose


class _JavaRandom:
    """``java.util.Random``, as far as ``nextInt(bound)`` needs it."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _MASK

    def below(self, bound: int) -> int:
        """Return Java's ``nextInt(bound)``."""
        bits = self._next31()
        if bound & -bound == bound:
            return bound * bits >> 31
        # the last, incomplete part of the range would make it uneven
        while bits - bits % bound + (bound - 1) >= 1 << 31:
            bits = self._next31()
        return bits % bound

    def _next31(self) -> int:
        self._state = (self._state * _MULTIPLIER + 0xB) & _MASK
        return self._state >> 17

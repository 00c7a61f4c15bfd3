"""Tuples that travel in blocks on a real Storm: each arrives, at the task that Storm would have chosen."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from multilang.topology.javahash import task_index
from tests.soak import chosen
from tests.storm.conftest import SHIPPED, give, wait_for
from tests.storm.shipped.blocks import NUMBERS

if TYPE_CHECKING:
    from pathlib import Path

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus


@pytest.mark.parametrize("how", chosen(["block", "tuple"], "block"))
def test_each_tuple_comes_to_the_task_that_storm_would_choose(
    storm: Cluster, nimbus: Nimbus, tmp_path: Path, how: str
) -> None:
    file = tmp_path / "got"
    give(storm, SHIPPED / "blocks.py", "blocks", **{"test.file": str(file), "multilang.exchange": how})

    def got(component: str) -> set[tuple[Any, ...]]:
        found = file.with_name(f"got.{component}")
        lines = found.read_text().splitlines() if found.exists() else []
        return {tuple(json.loads(line)) for line in lines if line.endswith("]")}

    wait_for(lambda: len(got("sink")) >= 5 * NUMBERS and len(got("one")) >= NUMBERS, "all have come")
    blocks = how == "block"
    expected: Counter[tuple[Any, ...]] = Counter()
    for n in range(NUMBERS):
        key = f"it's {n % 10}"
        expected["default", task_index([key], 3), n, key, blocks] += 1
        for index in range(3):
            expected["again", index, n, blocks] += 1
        expected["named", n % 3, n, False] += 1
    assert got("sink") == set(expected)
    assert got("one") == {("default", 0, n, f"it's {n % 10}", blocks) for n in range(NUMBERS)}

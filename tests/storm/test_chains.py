"""Chains on a real Storm: bolts that share a process there, under unmodified code."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tests.soak import soak_only
from tests.storm.conftest import SHIPPED, acked, give, wait_for
from tests.storm.shipped.chained import NUMBERS

if TYPE_CHECKING:
    from pathlib import Path

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus


def sunk(file: Path) -> Counter[tuple[Any, ...]]:
    files = [each for index in (0, 1) if (each := file.with_name(f"got.{index}")).exists()]
    lines = [line for each in files for line in each.read_text().splitlines()]
    return Counter(tuple(json.loads(line)) for line in lines if line.endswith("]"))  # the last may be half a line


def expected() -> set[tuple[Any, ...]]:
    plus = {("plus", "plus", "default", n + NUMBERS, "asks") for n in range(NUMBERS)}
    return plus | {("asks", "asks", "default", n, "numbers") for n in range(NUMBERS)}


def numbers(file: Path) -> set[tuple[Any, ...]]:
    return {row for row in sunk(file) if row[2] == "default"}


def test_members_see_on_storm_what_was_declared(storm: Cluster, nimbus: Nimbus, tmp_path: Path) -> None:
    file = tmp_path / "got"
    give(storm, SHIPPED / "chained.py", "chained", **{"test.file": str(file)})
    wait_for(lambda: numbers(file) >= expected(), "all numbers have come")
    wait_for(lambda: ("three", "three", "ticks", "three") in sunk(file), "a tick was told")
    wait_for(lambda: acked(nimbus, "chained", "numbers")[0] >= NUMBERS, "all numbers are acked")
    components = {each.id for each in nimbus.status("chained").components if each.id[0] != "_"}
    assert components == {"numbers", "three+asks+plus+pids", "sink"}
    got = sunk(file)
    assert {row for row in got if row[2] == "default"} == expected()
    if not acked(nimbus, "chained", "numbers")[1]:  # nothing was replayed
        assert {count for row, count in got.items() if row[2] == "default"} == {3}


@soak_only
def test_nothing_is_lost_when_a_chain_is_killed_on_storm(storm: Cluster, nimbus: Nimbus, tmp_path: Path) -> None:
    file = tmp_path / "got"
    give(storm, SHIPPED / "chained.py", "chained-killed", **{"test.file": str(file), "multilang.exchange": "block"})
    for kill in range(2):
        wait_for(lambda n=200 * (kill + 1): len(numbers(file)) >= n, "some numbers have come")  # type: ignore[misc]
        _, pid = (tmp_path / "got.pids").read_text().splitlines()[-1].split()
        with suppress(ProcessLookupError):  # it has done all, or a worker that was killed took it along
            os.kill(int(pid), signal.SIGKILL)
    wait_for(lambda: numbers(file) >= expected(), "all numbers have come")
    assert numbers(file) == expected()
    wait_for(lambda: len((tmp_path / "got.pids").read_text().splitlines()) > 2, "a chain was started again")

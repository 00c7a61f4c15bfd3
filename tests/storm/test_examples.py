"""Every example gives on a real Storm what it gives in the embedded cluster, task by task where a key chooses the task."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.command import ROOT, multilang
from tests.soak import soak_only
from tests.storm.conftest import SHIPPED, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus

Lines = list[tuple[str, int, list[Any]]]


def greatest(lines: Lines, component: str, key: int, value: int) -> dict[tuple[int, Any], Any]:
    """Of each task and key the greatest value, which is the last one where values grow."""
    found: dict[tuple[int, Any], Any] = defaultdict(int)
    for name, index, values in lines:
        if name == component:
            found[index, values[key]] = max(found[index, values[key]], values[value])
    return dict(found)


def word_counts(lines: Lines) -> object:
    return greatest(lines, "count", 0, 1)


def joined_orders(lines: Lines) -> object:
    pairs = sorted((index, values) for name, index, values in lines if name == "join")
    return pairs, greatest(lines, "turnover", 0, 1)


def measured(lines: Lines) -> object:
    """Task index -> texts and characters; the task's number, which is among the values, depends on the cluster."""
    last: dict[int, list[int]] = {}
    for _, index, (_, *values) in lines:
        last[index] = max(last.get(index, []), values)
    return last


def rolled(lines: Lines) -> object:
    """Return which task counted which word. The height of a count in a window depends on the times of ticks."""
    return {(index, values[0]) for _, index, values in lines}


# The components to record, what must be the same, and in how many workers it runs.
EXAMPLES: dict[str, tuple[list[str], Callable[[Lines], object], int]] = {
    "word_count": (["count"], word_counts, 2),
    "join_orders": (["join", "turnover"], joined_orders, 1),
    "direct_balance": (["measure"], measured, 2),
    "node_split": (["count"], word_counts, 1),
    "rolling_top_words": (["count"], rolled, 1),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the examples, and beside each the same with a recorder."""
    folder = tmp_path / "project"
    shutil.copytree(ROOT / "examples", folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(SHIPPED / "recorder.py", folder)
    for example, (components, _, _) in EXAMPLES.items():
        (folder / f"recorded_{example}.py").write_text(
            f"import {example}\nfrom recorder import recorded\n\n"
            f"topology = recorded({example}.topology, *{components})\n"
        )
    return folder


def read(folder: Path) -> Lines:
    path = folder / "recorded"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@soak_only
def test_examples_give_what_they_give_in_the_embedded_cluster(
    storm: Cluster, nimbus: Nimbus, project: Path, tmp_path: Path
) -> None:
    conf = ("-c", "topology.message.timeout.secs=240")
    found = {}
    for example, (_, summary, _) in EXAMPLES.items():  # before the cluster is busy with all of them
        here = tmp_path / "here" / example
        here.mkdir(parents=True)
        shown = multilang("run", f"recorded_{example}.py", "-c", f"test.folder={here}", "--json", *conf, cwd=project)
        assert shown.returncode == 0, shown.stderr
        spouts = [each for each in json.loads(shown.stdout)["components"].values() if each["kind"] == "spout"]
        acked = {each["component"]: (each["acked"], each["failed"]) for each in spouts}
        found[example] = acked, summary(read(here))

    for example, (_, _, workers) in EXAMPLES.items():
        (tmp_path / "there" / example).mkdir(parents=True)
        shown = multilang(
            *("submit", f"recorded_{example}.py", "--nimbus", storm.address, "--name", example, "--wait", 0, *conf),
            *("-c", f"test.folder={tmp_path / 'there' / example}", "-c", f"topology.workers={workers}"),
            cwd=project,
        )
        assert shown.returncode == 0, shown.stderr

    for example, (acked, expected) in found.items():

        def all_acked(name: str = example, acked: dict[str, tuple[int, int]] = acked) -> bool:
            components = nimbus.status(name).components
            return {each.id: (each.acked, each.failed) for each in components if each.id in acked} == acked

        wait_for(all_acked, f"as many are acked and failed by the spouts of {example} as here: {acked}")
        assert EXAMPLES[example][1](read(tmp_path / "there" / example)) == expected
        nimbus.kill(example, 0)

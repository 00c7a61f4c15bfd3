"""``multilang plan``: how many tasks and CPUs a topology needs for a rate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from multilang.cli import plan as command
from multilang.local.sizing import Cost
from tests.cli.command import multilang

BURNING = Path(__file__).parents[1] / "local" / "burning.py"


def test_a_topology_is_measured_and_planned() -> None:
    shown = multilang("plan", BURNING, "--rate", 5000, "--json")
    assert shown.returncode == 0, shown.stderr
    document: dict[str, Any] = json.loads(shown.stdout)
    assert [(each["id"], each["rate"]) for each in document["components"]] == [
        ("numbers", 5000), ("burns", 5000), ("ends", 10_000),
    ]  # fmt: skip
    burns = document["components"][1]
    assert burns["needed"] >= 7  # five seconds of CPU a second, each task busy for 70 %
    assert burns["cpus"] == pytest.approx(5000 * burns["cost_us"] / 1e6)
    assert document["first_at"] >= 5000
    assert document["problems"] == []


COSTS = [
    Cost(id="numbers", tasks=1, tuples=5000, cost_us=110.0, per_source=1.0),
    Cost(id="burns", tasks=1, tuples=5000, cost_us=550.0, per_source=1.0),
    Cost(id="ends", tasks=1, tuples=10_000, cost_us=55.0, per_source=2.0, undivided="global"),
]


def planned(monkeypatch: pytest.MonkeyPatch, rate: int) -> tuple[int, list[str]]:
    monkeypatch.setattr(command, "measure", lambda topology, seconds: (COSTS, 3.0))
    found = CliRunner().invoke(command.plan, [f"{BURNING}:to_one", "--rate", str(rate)], standalone_mode=False)
    return found.return_value, found.output.splitlines()


def test_a_table_has_the_tasks_and_cpus_and_what_reaches_its_limit_first(monkeypatch: pytest.MonkeyPatch) -> None:
    status, lines = planned(monkeypatch, 5000)
    assert status == 0
    assert [line.split() for line in lines[1:5]] == [
        ["numbers", "5,000", "5,000", "110", "1", "0.55"],
        ["burns", "5,000", "5,000", "550", "4", "2.8"],
        ["ends", "10,000", "10,000", "55.0", "1", "0.55"],
        ["all", "6", "3.8"],
    ]
    assert lines[5:] == [
        "first to reach its limit with these tasks: 'burns', at 7,273 tuples/s of the spouts",
        "not in these CPUs: Storm's workers, which move 15,000 messages/s between components",
    ]


def test_what_no_tasks_can_do_is_said_and_is_the_exit_status(monkeypatch: pytest.MonkeyPatch) -> None:
    status, lines = planned(monkeypatch, 20_000)
    assert status == 1
    assert "first to reach its limit with these tasks: 'ends', at 9,091 tuples/s of the spouts" in lines
    assert lines[-1] == (
        "no number of tasks is enough for 'ends': the global grouping does not divide its tuples, and lets the spouts emit "
        "6,364 tuples/s"
    )


def test_what_can_not_be_measured_is_refused() -> None:
    shown = multilang("plan", f"{BURNING}:unread", "--rate", 5000, "--for", 5)
    assert shown.returncode == 1
    assert "Error: bolt 'never' saw too few tuples to be measured (0): measure for longer (--for)" in shown.stderr

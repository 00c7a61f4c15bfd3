"""``multilang plan``: how many tasks and CPUs a topology needs for a rate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from multilang.cli.plan import plan
from multilang.runtime.sizing import Cost, Costs, size
from tests.cli.command import multilang

BURNING = Path(__file__).parents[1] / "local" / "burning.py"


def test_a_topology_is_measured_and_planned_and_planned_again_from_the_file(tmp_path: Path) -> None:
    shown = multilang("plan", BURNING, "--rate", 5000, "--workers", 4, "--json")
    assert shown.returncode == 0, shown.stderr
    document: dict[str, Any] = json.loads(shown.stdout)
    measured = Costs.from_json(document["measured"])
    assert document["plan"] == json.loads(json.dumps(size(measured, 5000, workers=4).as_json()))
    burns = document["plan"]["components"][1]
    assert (burns["id"], burns["rate"]) == ("burns", 5000)
    assert burns["tasks"] >= 7  # five seconds of CPU a second, each task busy for 70 %
    file = tmp_path / "costs.json"
    file.write_text(shown.stdout)
    again = CliRunner().invoke(plan, [str(BURNING), "--rate", "5000", "--workers", "4", "--costs", str(file)])
    assert again.exit_code == 0, again.output
    table = [line.split() for line in again.output.splitlines()]
    assert table[0][:2] == ["component", "tuples/s"]
    assert [row[:2] for row in table[1:4]] == [["numbers", "5,000"], ["burns", "5,000"], ["ends", "10,000"]]
    assert f"the costs are those of {file}" in again.output
    assert "4 workers: " in again.output


def test_what_no_tasks_can_do_is_said_and_is_the_exit_status(tmp_path: Path) -> None:
    how: Any = {"tuples": 5000, "low_us": 100.0, "high_us": 120.0, "cost_us": 110.0, "per_source": 1.0, "tasks": 1}
    parts = (
        Cost(id="numbers", kind="spout", **how),
        Cost(id="burns", kind="bolt", **how),
        Cost(id="ends", kind="bolt", undivided="the global grouping gives all tuples of 'burns' to one of its tasks", **how),
    )  # fmt: skip
    costs = Costs(topology="t", engine="process", by="cpu", seconds=5.0, cpus=2, source_tuples=5000, components=parts)
    file = tmp_path / "costs.json"
    file.write_text(json.dumps(costs.as_json()))
    found = CliRunner().invoke(
        plan, [f"{BURNING}:to_one", "--rate", "20000", "--costs", str(file)], standalone_mode=False
    )
    assert found.return_value == 1
    assert "no number of tasks is enough for 'ends': the global grouping" in found.output
    assert "first to give out with these tasks: 'ends', at 9,091 tuples/s" in found.output


def test_costs_of_another_topology_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "costs.json"
    for text, message in (
        ("no", "is no JSON"),
        ("[]", "has no measured costs"),
        (json.dumps(Costs(topology="t", engine="process", by="cpu", seconds=5.0, cpus=2, source_tuples=1, components=()).as_json()), "has no costs of 'burns'"),
    ):  # fmt: skip
        file.write_text(text)
        found = CliRunner().invoke(plan, [str(BURNING), "--rate", "1", "--costs", str(file)])
        assert found.exit_code == 1
        assert message in found.output

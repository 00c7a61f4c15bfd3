"""Many generated topologies in one, on a real Storm: what the simulated cluster gives. See tests/differential."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import differential
from tests.differential import plain
from tests.differential.local import run
from tests.differential.outcomes import Outcome, Record, check_same, counted
from tests.differential.shapes import Shape, sample
from tests.soak import SOAK
from tests.storm.conftest import give, wait_for

if TYPE_CHECKING:
    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus

HERE = Path(next(iter(differential.__path__)))
PLAIN, STATEFUL = (20, 6) if SOAK else (4, 1)  # graphs in one submission
SUBMISSIONS = 5 if SOAK else 1
STARTING = """\
import json

from components import packed

topology = packed(json.loads({shapes!r}), {record!r})
"""


def can_run(shape: Shape) -> bool:
    """Return whether it can be one of many on Storm.

    The number of ackers belongs to a whole topology; Storm takes half a minute to find out what is forgotten; a custom
    grouping in Python is refused at the submission.
    """
    custom = any(each["grouping"] == "custom" for part in shape["components"] for each in part.get("inputs", ()))
    return not custom and shape["forget"] is None and shape["ackers"] != 0


@pytest.mark.soak
@pytest.mark.parametrize("start", range(0, 1000 * SUBMISSIONS, 1000))
def test_storm_gives_what_the_embedded_cluster_gives(
    storm: Cluster, nimbus: Nimbus, tmp_path: Path, start: int
) -> None:
    submissions = {
        "plain": sample(PLAIN, start, can_run, stateful=False),
        "stateful": sample(STATEFUL, start, can_run, stateful=True),
    }
    for name, given in submissions.items():
        folder = tmp_path / name
        folder.mkdir()
        for file in ("components.py", "child.py"):
            shutil.copy(HERE / file, folder)
        text = STARTING.format(shapes=json.dumps(given), record=str(folder / "record"))
        (folder / "packed.py").write_text(text)
        give(storm, folder / "packed.py", name, "--include", "child.py")
    for name, given in submissions.items():
        due = [run(shape, "simulated", number) for number, shape in enumerate(given)]
        record = tmp_path / name / "record"

        def there(number: int, shape: Shape, record: Path = record) -> Record:
            lines = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
            return counted(shape, lines, f"g{number}_")

        def missing(given: list[Shape] = given, due: list[Outcome] = due, there=there) -> list[int]:
            return [number for number, shape in enumerate(given) if due[number].record - there(number, shape)]

        try:
            wait_for(lambda missing=missing: not missing(), f"all of the {name} graphs is there")
        finally:  # what is missing is said by name
            for number, shape in enumerate(given):
                check_same(shape, due[number], Outcome("Storm", there(number, shape)))


def test_unanchored_refused_and_aliased_tuples_give_what_plain_python_does(
    storm: Cluster, nimbus: Nimbus, tmp_path: Path
) -> None:
    shapes = {
        name: {"rows": 12, "tasks": 2, "reliable": name == "reliable", "steps": [(2, True, True), (1, False, True)]}
        for name in ("reliable", "unreliable")
    }
    shutil.copy(HERE / "plain.py", tmp_path)
    for name, shape in shapes.items():
        text = f"from plain import built\n\ntopology = built({shape!r}, {str(tmp_path / name)!r})\n"
        (tmp_path / f"{name}_rows.py").write_text(text)
        give(storm, tmp_path / f"{name}_rows.py", name)
    for name, shape in shapes.items():
        wanted = 2 * [plain.worked_out(shape)]
        try:
            wait_for(
                lambda name=name, wanted=wanted: plain.written(tmp_path / name) == wanted, f"all of {name} is there"
            )
        finally:  # what differs is said by name
            assert plain.written(tmp_path / name) == wanted

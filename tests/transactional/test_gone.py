"""The file of transactions, or of a map, is deleted or replaced under a running topology: that ends, with one line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from multilang.settings import TRANSACTIONS
from multilang.transactional import SqliteBacking, TransactionalMap
from tests.patience import patient
from tests.servers import wait_for
from tests.transactional.topologies import counts_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("how", ["deleted", "replaced"])
@pytest.mark.parametrize("which", [TRANSACTIONS, "test.maps"])
def test_a_file_that_goes_away_ends_the_topology(which, how, tmp_path):
    conf = {
        "topology.max.spout.pending": 3,
        "test.words": 3000,
        "test.take": 10,
        "test.maps": str(tmp_path / "counts.sqlite"),
        "multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite",
    }
    command = [sys.executable, "-m", "tests.transactional.overlapping", "transactional", json.dumps(conf)]
    path = Path(conf[which].removeprefix("sqlite://"))
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        counts = TransactionalMap(SqliteBacking(conf["test.maps"], "TransactionalMap"))
        wait_for(lambda: counts.multi_get(counts_of(3000)), "it counts")
        counts.close()
        if how == "replaced":
            shutil.copy(path, tmp_path / "copy")
            os.replace(tmp_path / "copy", path)
        else:
            path.unlink()
        _, said = process.communicate(timeout=patient(90))
    assert process.returncode not in (0, None)
    assert f"{path} was deleted, renamed, emptied or replaced while it was in use" in said.strip().splitlines()[-1]

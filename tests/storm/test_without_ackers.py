"""Without ackers, a spout on Storm is told of the ack before its emit returns, whatever becomes of the tuple."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.storm.conftest import SHIPPED, give, wait_for
from tests.storm.shipped.prompt import IDS, WAYS

if TYPE_CHECKING:
    from pathlib import Path

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus


def test_an_emit_tells_the_spout_of_the_ack_before_it_returns(storm: Cluster, nimbus: Nimbus, tmp_path: Path) -> None:
    file = tmp_path / "told"
    give(storm, SHIPPED / "prompt.py", "prompt", **{"test.file": str(file)})
    count = len(WAYS) * len(IDS)
    wait_for(lambda: file.exists() and len(file.read_text().splitlines()) >= count, "all is emitted")
    told = [json.loads(line) for line in file.read_text().splitlines()]
    assert told == [[id, [["ack", id]]] for id in IDS] * len(WAYS)

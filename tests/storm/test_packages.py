"""The manual's submissions, as they are written there: what a topology needs comes along by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.topology import load_object
from multilang.transactional import SqliteBacking, TransactionalMap
from tests.cli.command import ROOT, multilang
from tests.patience import patient
from tests.storm.conftest import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus


def test_the_bank_s_transactions_are_in_the_cluster_s_zookeeper(storm: Cluster, nimbus: Nimbus, tmp_path: Path) -> None:
    """Its process on a worker has no installed package but those of the jar."""
    command = "multilang submit examples/bank_transfers.py"
    assert f"    {command} " in (ROOT / "docs" / "transactional.md").read_text()
    shown = multilang(
        *command.split()[1:], "--nimbus", storm.address, "-c", "bank.transfers=1000",
        "-c", f'topology.environment={{"MULTILANG_STATE_HOME": "{tmp_path}"}}', MULTILANG_STATE_HOME=str(tmp_path),
        limit=patient(300),
    )  # fmt: skip
    assert shown.returncode == 0, shown.stdout + shown.stderr
    transfer = load_object(f"{ROOT / 'examples' / 'bank_transfers.py'}:transfer")
    due = dict.fromkeys((f"account-{number:02}" for number in range(20)), 1000)
    for payer, payee, amount in map(transfer, range(1000)):
        due[payer] -= amount
        due[payee] += amount
    balances = TransactionalMap(SqliteBacking(str(tmp_path / "bank.sqlite"), "balances"))
    wait_for(lambda: balances.multi_get(due) == due, "all transfers are made, each once")
    balances.close()
    figures: dict[str, int] = {}

    def ackers_are_counted() -> bool:
        components = nimbus.status("bank").components
        figures.update({each.id: each.acked or 0 for each in components}, answered=components[-1].emitted or 0)
        return components[-1].id == "__acker" and figures["answered"] > 0

    wait_for(ackers_are_counted, "the ackers have figures")
    assert figures["__acker"] > figures["answered"], "an ack for each root, and each bolt's"

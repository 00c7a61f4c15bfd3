"""A bank: money moves between accounts, whose total never changes, whatever dies.

    multilang run examples/bank_transfers.py --top accounts:account:balance

Its spout is written by hand: the batch of a transaction is the next 100 transfers, and a transfer is a function of its
number, so that the same batch can be emitted at any time. ``bank.transfers`` in the conf is their number.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from multilang import BasicBolt, BatchBolt, Context, Tuple
from multilang.coordination import BatchCollector
from multilang.state import state_file
from multilang.transactional import (
    Committer,
    Coordinator,
    Emitter,
    SqliteBacking,
    TransactionalMap,
    TransactionalSpout,
    TransactionalTopologyBuilder,
    TransactionAttempt,
)

ACCOUNTS = [f"account-{number:02}" for number in range(20)]
OPENING = 1000  # the first balance of each account
BATCH = 100


def transfer(number: int) -> tuple[str, str, int]:
    """Return the payer, the payee, and the amount."""
    chance = random.Random(number)
    payer, payee = chance.sample(ACCOUNTS, 2)
    return payer, payee, chance.randint(1, 50)


class TransferCoordinator(Coordinator):
    """Begins transactions.

    A transaction's metadata are the numbers of its first transfer and of the one after its last.
    """

    def __init__(self, transfers: int) -> None:
        self.transfers = transfers
        self.begun = 0

    def is_ready(self) -> bool:
        return self.begun < self.transfers

    def initialize_transaction(self, txid: int, previous: Any) -> Any:
        first = previous["end"] if previous else 0
        self.begun = min(first + BATCH, self.transfers)
        return {"first": first, "end": self.begun}

    def exhausted(self, metadata: Any) -> bool:
        return bool(metadata) and metadata["end"] >= self.transfers


class TransferEmitter(Emitter):
    """Emits the share of a task in a batch."""

    def __init__(self, task: int, tasks: int) -> None:
        self.task = task
        self.tasks = tasks

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchCollector) -> None:
        for number in range(metadata["first"], metadata["end"]):
            if number % self.tasks == self.task:
                collector.emit([attempt, *transfer(number)])


class Transfers(TransactionalSpout):
    """All transfers, in their order."""

    output_fields = ["tx", "payer", "payee", "amount"]

    def get_coordinator(self, conf: dict[str, Any], context: Context) -> TransferCoordinator:
        return TransferCoordinator(conf.get("bank.transfers", 10_000))

    def get_emitter(self, conf: dict[str, Any], context: Context) -> TransferEmitter:
        return TransferEmitter(context.task_index, len(context.tasks(context.component)))


class Entries(BasicBolt):
    """Makes two entries of a transfer."""

    output_fields = ["tx", "account", "change"]

    def process(self, tup: Tuple) -> None:
        attempt, payer, payee, amount = tup.values
        self.emit([attempt, payer, -amount])
        self.emit([attempt, payee, amount])


class Accounts(BatchBolt, Committer):
    """Stores the balances of the accounts."""

    output_fields = ["tx", "account", "balance", "change"]

    def __init__(self, balances: TransactionalMap) -> None:
        self.balances = balances

    def initialize(self, conf: dict[str, Any], context: Context, collector: BatchCollector, id: Any) -> None:
        self.changes: Counter[str] = Counter()

    def process(self, tup: Tuple) -> None:
        self.changes[tup["account"]] += tup["change"]

    def finish_batch(self) -> None:
        changes = {account: _changed_by(change) for account, change in self.changes.items()}
        for account, balance in self.balances.update(self.id, changes).items():
            self.emit([self.id, account, balance, self.changes[account]])


def _changed_by(change: int) -> Any:
    return lambda balance: (OPENING if balance is None else balance) + change


class Audit(BatchBolt):
    """Checks, after the accounts, that the changes of a transaction add up to zero over all accounts."""

    output_fields = ["tx", "total"]

    def initialize(self, conf: dict[str, Any], context: Context, collector: BatchCollector, id: Any) -> None:
        self.total = 0

    def process(self, tup: Tuple) -> None:
        self.total += tup["change"]

    def finish_batch(self) -> None:
        if self.total:
            raise ValueError(f"transaction {self.id.txid} made {self.total} out of nothing")
        self.emit([self.id, self.total])


builder = TransactionalTopologyBuilder("bank", "transfers", Transfers, parallelism=2)
builder.set_bolt("entries", Entries, 2).shuffle_grouping("transfers")
balances = TransactionalMap(SqliteBacking(state_file("bank"), "balances"))
builder.set_bolt("accounts", Accounts(balances), 2).fields_grouping("entries", "account")
builder.set_bolt("audit", Audit).global_grouping("accounts")
topology = builder.build(conf={"topology.max.spout.pending": 4})

"""The rules that a history of commits must keep."""

from __future__ import annotations


def assert_in_order(commits):
    """Of each task: no transaction is left out, and none comes after a later one; a repeated one is another attempt."""
    for task in {task for task, *_ in commits}:
        mine = [(txid, attempt) for each, txid, attempt in commits if each == task]
        txids = [txid for txid, _ in mine]
        assert txids == sorted(txids), mine
        assert set(txids) == set(range(1, txids[-1] + 1)), mine
        assert len(set(mine)) == len(mine), mine

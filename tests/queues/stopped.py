"""A process with one KafkaSpout, which does what it reads, ``read N`` or ``ack``, and answers with what the spout did."""

from __future__ import annotations

import json
import sys

from multilang.queues import KafkaSpout
from multilang.testing import SpoutRun, run_spout
from tests.servers import wait_for


class Prompt(KafkaSpout):
    """Commits at once."""

    commit_secs = 0.0


def was_put_out(run: SpoutRun) -> bool:
    run.next()
    return any("has excluded this task" in text for _, text in run.logged)


def has(run: SpoutRun, count: int) -> bool:
    run.next()
    return len(run.values) >= count


def main(servers: str, topic: str, session_secs: str) -> None:
    run = run_spout(Prompt(servers, topic, "shop", session_secs=float(session_secs)))
    for line in sys.stdin:
        command, *count = line.split()
        if command == "read":
            wait_for(lambda count=int(count[0]): has(run, count), "the messages")
        else:
            for tup_id in list(run.pending):
                run.ack(tup_id)
            wait_for(lambda: was_put_out(run), "the group excludes it")
        print(json.dumps({"values": run.values, "errors": run.errors}), flush=True)
    run.close()


if __name__ == "__main__":
    main(*sys.argv[1:])

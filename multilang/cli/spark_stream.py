"""``multilang spark --stream``: the topology as a streaming query on folders to which files are added."""

from __future__ import annotations

import signal
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from multilang.cli import exits
from multilang.cli.live import shown_on_page
from multilang.cli.view import console
from multilang.protocol.codec import dumps

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_bridge.stream import BatchProgress, TopologyQuery


def run_stream(
    start: Callable[[Callable[[BatchProgress], None]], TopologyQuery],
    name: str,
    *,
    page: int | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Run the query that ``start`` starts until it ends or a SIGINT or SIGTERM comes, and print each batch's
    progress.
    """
    shown = console(sys.stderr)
    batches = 0

    def say(text: str) -> None:
        shown.print(text, highlight=False, markup=False, soft_wrap=True)

    def tell(progress: BatchProgress) -> None:
        nonlocal batches
        batches += 1
        if as_json:
            print(dumps(asdict(progress)), flush=True)
        if not quiet:
            say(f"{name} (spark) {progress}")

    asked: list[int] = []
    former = {number: signal.signal(number, lambda sent, _: asked.append(sent)) for number in _SIGNALS}
    try:
        query = start(tell)
        try:
            with shown_on_page(page, query.status, say):
                while not asked:
                    try:
                        query.wait(timeout=0.2)
                        break
                    except TimeoutError:
                        pass
        finally:
            query.stop()
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    for each in query.failed[-10:]:
        say(f"failed at every attempt: {each}")
    status = query.status()
    acked, lost = status.total("acked"), status.total("lost", None)
    if not as_json:
        print(f"{name}: {acked:,} rows acked in {batches} batches, {lost:,} lost")
    if asked:
        return exits.INTERRUPTED if asked[0] == signal.SIGINT else exits.TERMINATED
    return exits.FAILED_TUPLES if lost else exits.OK


_SIGNALS = (signal.SIGINT, signal.SIGTERM)

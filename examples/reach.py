"""The reach of a URL on a social network: the followers of all who tweeted it, each counted once.

    multilang drpc serve examples/reach.py
    multilang drpc call reach foo.com/blog/1

For one call, many tasks at once fetch and compare thousands of followers; no single task sees all of them. The network
is invented: 100,000 people, and who follows whom is computed from their numbers, so that every task sees the same
network without a database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zlib import crc32

from multilang import BasicBolt, BatchBolt
from multilang.drpc import LinearDRPCTopologyBuilder

if TYPE_CHECKING:
    from multilang import Context, Tuple
    from multilang.coordination import BatchCollector

PEOPLE = 100_000


def tweeters(url: str) -> list[int]:
    """Return the people who tweeted a URL: up to 20, and nobody in one case of seven."""
    seed = crc32(url.encode())
    return sorted({crc32(b"%d tweets %d" % (n, seed)) % PEOPLE for n in range(seed % 7 * 3 + seed % 3)})


def followers(person: int) -> list[int]:
    """Return the followers of a person: up to 300, and famous people have many more than most."""
    most = 300 if person % 50 == 0 else 60
    return sorted({crc32(b"%d follows %d" % (n, person)) % PEOPLE for n in range(person % most)})


def reach(url: str) -> int:
    """Return the same number without a topology."""
    return len({follower for person in tweeters(url) for follower in followers(person)})


class GetTweeters(BasicBolt):
    output_fields = ["id", "tweeter"]

    def process(self, tup: Tuple) -> None:
        request, url = tup.values
        self.emit_many([[request, person] for person in tweeters(url)])


class GetFollowers(BasicBolt):
    output_fields = ["id", "follower"]

    def process(self, tup: Tuple) -> None:
        request, person = tup.values
        self.emit_many([[request, follower] for follower in followers(person)])


class PartialUniquer(BatchBolt):
    """Counts the followers that come to this task, each once: the grouping sends the same person to the same task."""

    output_fields = ["id", "partial-count"]

    def initialize(self, conf: dict[str, Any], context: Context, collector: BatchCollector, id: Any) -> None:
        self.followers: set[int] = set()

    def process(self, tup: Tuple) -> None:
        self.followers.add(tup["follower"])

    def finish_batch(self) -> None:
        self.emit([self.id, len(self.followers)])


class CountAggregator(BatchBolt):
    output_fields = ["id", "reach"]

    def initialize(self, conf: dict[str, Any], context: Context, collector: BatchCollector, id: Any) -> None:
        self.count = 0

    def process(self, tup: Tuple) -> None:
        self.count += tup["partial-count"]

    def finish_batch(self) -> None:
        self.emit([self.id, self.count])


builder = LinearDRPCTopologyBuilder("reach")
builder.add_bolt(GetTweeters, parallelism=2)
builder.add_bolt(GetFollowers, parallelism=3).shuffle_grouping()
builder.add_bolt(PartialUniquer, parallelism=3).fields_grouping("id", "follower")
builder.add_bolt(CountAggregator, parallelism=2).fields_grouping("id")
topology = builder.build()

"""What somebody typed into Redis by hand is refused by one sentence, or changes no count; nothing hangs."""

from __future__ import annotations

import re

import pytest
import redis as redis_py

from multilang.local import LocalCluster, LocalClusterError
from multilang.state.providers import provider_of
from tests.soak import sampled
from tests.state.topologies import Lines, build, stored, words_of

SENTENCES = 5
GARBAGE = [b"", b"\xff\xfe", b"nonsense", b"{", b"[]", b"{}", b"-7", b"1e400", b'"a"', b"null", b"9" * 400]
# The places of the coordinator and of the owner, which decide how a topology goes on: a key, or a field of a hash.
PLACES = [
    (key, field)
    for key, fields in {
        "stateful:$checkpointspout-0": ['"__shape"', '"__state"', '"__tasks"'],
        "stateful:$checkpointspout-0$txid": ["claim", "epoch", "size", "step", "commit"],
        "stateful:$owner": ["epoch", "owner"],
        "stateful:$beats": [],
    }.items()
    for field in (None, *fields)
]
CASES = [(key, field, garbage) for key, field in PLACES for garbage in GARBAGE]


def run(redis, sentences):
    conf = {**redis.conf, "multilang.state.alignment": "exact", "topology.state.checkpoint.interval.ms": 100}
    with LocalCluster(mode="inprocess", conf=redis.conf) as cluster:
        cluster.submit(build({**conf, "test.sentences": sentences}, Lines)).wait(timeout=60)


@pytest.mark.parametrize(("key", "field", "garbage"), sampled(CASES, 23))
def test_garbage_is_one_clear_error_or_changes_no_count(redis, key, field, garbage):
    client = redis_py.Redis(port=redis.port)
    run(redis, SENTENCES)
    if field is None:
        client.delete(key)
        client.rpush(key, garbage)
    else:
        client.hset(key, field, garbage)
    said = None
    try:
        run(redis, 2 * SENTENCES)
    except LocalClusterError as error:
        said = str(error).partition("\n")[0]
    client.close()
    if said is not None:
        assert "Redis 127.0.0.1" in said or "'$checkpointspout-0'" in said or key in said
        assert re.search(r"(Type|Value|Key|Attribute|Index)Error in component", said) is None, said
    else:
        provider = provider_of({**redis.conf, "topology.name": "stateful"})
        assert stored(provider, "count", 2) == dict(words_of(2 * SENTENCES))
        provider.close()

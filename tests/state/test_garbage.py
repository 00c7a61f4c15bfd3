"""Something that somebody typed into Redis by hand is refused by one sentence, or changes no count; nothing hangs."""

from __future__ import annotations

import re

import pytest
import redis as redis_py

from multilang.local import LocalCluster, LocalClusterError
from multilang.state import StateError, StoreGoneError
from multilang.state.providers import provider_of
from tests.patience import patient
from tests.soak import sampled
from tests.state.conftest import opened
from tests.state.topologies import Lines, build, stored, words_of

SENTENCES = 5
GARBAGE = [b"", b"\xff\xfe", b"nonsense", b"{", b"[]", b"{}", b"-7", b"1e400", b'"a"', b"null", b"9" * 400]
# The places of the owner, of the coordinator and of a task, which decide how a topology goes on: a key, or a field of a hash.
PLACES = [
    (key, field)
    for key, fields in {
        "{state/stateful/$checkpointspout-0}/data": ['"__shape"', '"__state"', '"__tasks"', '"__whole"'],
        "{state/stateful/$checkpointspout-0}/head": ["head"],
        "{state/stateful/count-0}/data": [],
        "{state/stateful/count-0}/prepared": [],
        "{state/stateful/count-0}/head": ["head"],
        "{state/stateful}/$owner": ["owner", "beats"],
        "{state/stateful}/replacing": ["names"],
    }.items()
    for field in (None, *fields)
]
CASES = [(key, field, garbage) for key, field in PLACES for garbage in GARBAGE]


def run(redis, sentences):
    conf = {**redis.conf, "multilang.state.alignment": "exact", "topology.state.checkpoint.interval.ms": 100}
    with LocalCluster(mode="inprocess", conf=redis.conf) as cluster:
        cluster.submit(build({**conf, "test.sentences": sentences}, Lines)).wait(timeout=patient(60))


@pytest.mark.parametrize(("key", "field", "garbage"), sampled(CASES, 31))
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
        assert "Redis 127.0.0.1" in said or "'$checkpointspout-0'" in said or key in said, said
        assert re.search(r"(Type|Value|Key|Attribute|Index)Error in component", said) is None, said
    else:
        provider = provider_of({**redis.conf, "topology.name": "stateful"})
        assert stored(provider, "count", 2) == dict(words_of(2 * SENTENCES))
        provider.close()


@pytest.mark.parametrize("head", [b"", b"nonsense", b"{}", b"[]", b'{"step": 1000}', b'{"epoch": "1"}'])
def test_a_head_that_is_typed_while_a_task_runs_is_not_taken_for_one_that_was_written(redis, head):
    found = provider_of({**redis.conf, "topology.name": "stateful"})
    store = opened(found, "count-0").store
    store.write([(b"1", b"1")])
    with redis_py.Redis(port=redis.port) as client:
        client.hset("{state/stateful/count-0}/head", "head", head)
    with pytest.raises(StoreGoneError, match=r"changed by (somebody else|hand)"):
        store.write([(b"1", b"2")])
    assert store.load(b"1") == b"1"
    found.close()


@pytest.mark.parametrize("text", [*GARBAGE, b"[1]", b'["x", 1]'])
def test_a_list_of_a_replacement_that_is_typed_is_refused_and_stays(redis, text):
    conf = {**redis.conf, "topology.name": "stateful"}
    found = provider_of(conf)
    found.claim()
    found.close()
    with redis_py.Redis(port=redis.port) as client:
        client.hset("{state/stateful}/replacing", "names", text)
        with pytest.raises(StateError, match=r"the list of a replacement that is to be completed is b'"):
            provider_of(conf).claim()
        assert client.hget("{state/stateful}/replacing", "names") == text

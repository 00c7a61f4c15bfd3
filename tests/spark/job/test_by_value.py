"""Code travels whole as long as a run needs it, of several in one process."""

from __future__ import annotations

import sys

from pyspark import cloudpickle

from spark_bridge.job.plan import by_value
from tests.state.topologies import topology

MODULE = "tests.state.topologies"


def is_whole() -> bool:
    return MODULE in cloudpickle.list_registry_pickle_by_value()


def test_a_module_is_pickled_whole_until_the_last_run_has_ended() -> None:
    first, second = by_value(topology), by_value(topology)
    first.__enter__()
    assert is_whole()
    second.__enter__()
    first.__exit__(None, None, None)
    assert is_whole()
    second.__exit__(None, None, None)
    assert not is_whole()


def test_what_the_user_has_registered_stays_so() -> None:
    cloudpickle.register_pickle_by_value(sys.modules[MODULE])
    try:
        with by_value(topology):
            assert is_whole()
        assert is_whole()
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[MODULE])

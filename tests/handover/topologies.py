"""The topologies of the tests of state under another name."""

from __future__ import annotations

from tests.state.topologies import exact as _exact
from tests.state.topologies import topology as _topology

exact = _exact.with_conf({}, "another")
topology = _topology.with_conf({}, "another")

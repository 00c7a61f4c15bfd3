"""The databases of these tests that are behind a network: each test has a part of its own, at a server for all of them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

_numbers = itertools.count()


@pytest.fixture(params=["redis", "zookeeper"])
def network(request: pytest.FixtureRequest) -> tuple[int, Callable[[int], str]]:
    """The port of a server, and what makes the URL of an empty database of a port."""
    server = request.getfixturevalue(request.param)
    path = "1" if request.param == "redis" else f"laws-{next(_numbers)}"
    return server.port, lambda port: f"{request.param}://127.0.0.1:{port}/{path}"

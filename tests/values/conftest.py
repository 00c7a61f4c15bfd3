"""Storm's own classes, for all tests here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.soak import SOAK
from tests.values.storm import Storm

if TYPE_CHECKING:
    from collections.abc import Iterator

# The first fetches Storm's jars; at full numbers one test sends a million values.
LIMIT_SECS = 5400 if SOAK else 900


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "storm" in getattr(item, "fixturenames", ()) and item.path.parent.name == "values":
            item.add_marker(pytest.mark.xdist_group("values"))  # in one process: one JVM
            item.add_marker(pytest.mark.timeout(LIMIT_SECS))


@pytest.fixture(scope="session")
def storm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storm]:
    found = Storm(tmp_path_factory.mktemp("java"))
    yield found
    found.close()

"""The sources that all spouts are tried on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.transactional.spouts.sources import KINDS, filled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.transactional.spouts.sources import Filled


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Filled]:
    found = filled(request.param, request, tmp_path)
    yield found
    found.close()

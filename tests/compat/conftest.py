from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.component.harness import Starter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    starter = Starter(tmp_path)
    yield starter
    starter.clean_up()

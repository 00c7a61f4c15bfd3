from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.component.harness import Starter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def start(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Starter]:
    """Starts components; a module whose tests are not about the start of Python says ``FORKS = True``."""
    starter = Starter(tmp_path, getattr(request.module, "FORKS", False))
    yield starter
    starter.clean_up()


@pytest.fixture
def unmeasured(start: Starter) -> None:
    """Processes without coverage, which takes a lock of its own around every call: code that a signal makes the process
    leave at that very moment, or a fork by another thread, keeps it locked for ever, for the end of the process, too.
    """
    start.measured = False

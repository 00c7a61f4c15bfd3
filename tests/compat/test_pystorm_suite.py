"""pystorm's own tests pass with the layer in the place of pystorm."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compat.suites import check, left_out, results

pytestmark = pytest.mark.timeout(600)  # it may download, and runs many tests


def test_pystorms_own_tests_pass(tmp_path: Path) -> None:
    found = results("pystorm", "3.1.4", tmp_path)
    assert len(found) == 65
    check(found, left_out("pystorm-tests-left-out.txt"))

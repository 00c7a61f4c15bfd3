"""streamparse's own tests pass with the layer in the place of streamparse."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compat.suites import check, left_out, results

pytestmark = pytest.mark.timeout(600)  # it may download, and runs many tests


def test_streamparses_own_tests_pass(tmp_path: Path) -> None:
    found = results("streamparse", "5.0.1", tmp_path)
    assert len(found) == 56
    check(found, left_out("streamparse-tests-left-out.txt"))

"""A log keeps all rows of a write, or none, wherever its process dies, also in a store that takes few rows in one step."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from multilang.store.memory import MemoryStore
from spark_bridge.stream.spout_log import SpoutLog, positions_in

URL = f"{__name__}.Small:"


class Died(Exception):
    pass


class Small(MemoryStore):
    """Its rows are there when it is opened again."""

    portion_rows = 3
    kept: ClassVar[dict[str, Any]] = {}
    left: ClassVar[int] = -1

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._places = self.kept

    def compare_and_write(self, place: str, expected: Any, changes: Any, *more: Any) -> bool:
        if "$owner" not in changes:
            Small.left -= 1
            if Small.left == -1:
                raise Died
        return super().compare_and_write(place, expected, changes, *more)


@pytest.mark.parametrize("step", ["append", "forget"])
@pytest.mark.parametrize("died", range(4))
def test_a_log_whose_process_died_goes_on_with_all_rows(step: str, died: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Small, "kept", {})
    monkeypatch.setattr(Small, "left", -1)
    log = SpoutLog(URL)
    start = log.begin
    log.append([[n] for n in range(11)], {0: "at 11", 1: None})
    middle = log.end
    Small.left = died
    with pytest.raises(Died):
        log.append([[n] for n in range(11, 22)], {0: "at 22"}) if step == "append" else log.forget(middle)
    log.close()
    log = SpoutLog(URL)
    assert (log.begin, log.end) == (start, middle)
    if step == "append":
        assert log.rows(start, middle) == [[n] for n in range(11)]
        assert log.positions() == {0: "at 11", 1: None}
        log.append([["other"]], {0: "at 12"})
        assert log.rows(middle, log.end) == [["other"]]
        assert positions_in(URL, 12) == {0: "at 12"}
    log.forget(middle)
    log.close()
    log = SpoutLog(URL)
    assert log.begin == middle
    rows = sorted(int(key) for key in Small.kept["log"]["rows"])
    assert [row for row in rows if row < 11] == []
    assert log.rows(log.begin, log.end) == ([["other"]] if step == "append" else [])
    assert log.positions() == ({0: "at 12"} if step == "append" else {0: "at 11", 1: None})
    log.close()

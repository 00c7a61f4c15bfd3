"""Components and runs that mypy --strict refuses; each line names the error that mypy must report."""

from multilang import BatchBolt, Bolt, KeyValueState, ReliableSpout, Spout, Tuple
from multilang.local import LocalTopology


class Source(ReliableSpout):
    def next_tuple(self) -> None:
        self.emit("abc")  # E: call-overload
        self.emit_many(["abc"])  # E: list-item


def spout(source: Spout) -> None:
    source.emit("abc", 1)  # E: call-overload
    source.emit({"word": "abc"}, 1)  # E: call-overload


def bolt(bolt: Bolt, tup: Tuple) -> None:
    bolt.emit("abc", anchors=[tup])  # E: call-overload
    bolt.emit({"abc"})  # E: call-overload
    bolt.emit_many(["abc"])  # E: list-item
    tasks: list[int] = bolt.emit(["abc"])  # E: assignment
    tasks = bolt.emit(["abc"], need_task_ids=False)  # E: assignment
    print(tasks)


def batch(bolt: BatchBolt) -> None:
    bolt.emit("abc")  # E: call-overload


def state(counts: KeyValueState[str, int]) -> None:
    counts.put(5, 1)  # E: arg-type
    counts.put("ant", "1")  # E: arg-type
    counts.get("ant") + 1  # E: operator
    counts.get(5)  # E: call-overload


def wait(run: LocalTopology) -> None:
    run.wait(until="draind")  # E: arg-type
    run.wait("idle")  # E: arg-type
    run.wait(10)  # E: arg-type

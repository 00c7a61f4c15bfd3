"""Code that mypy --strict refuses; each line names the error that mypy must report."""

from multilang.protocol import ChildConnection, ParentConnection, Tuple


def wrong(child: ChildConnection, tup: Tuple) -> None:
    ParentConnection("shell")  # E: arg-type
    child.receive_data("text")  # E: arg-type
    child.emit(5)  # E: arg-type
    child.emit("abc")  # E: arg-type
    child.emit(["a"], anchors=[5])  # E: list-item
    child.emit(["a"], anchor=[tup])  # E: call-arg
    child.emit(["a"], direct_task="5")  # E: arg-type
    child.ack(5)  # E: arg-type
    _ = child.pid  # E: attr-defined
    tup.id = 5  # E: assignment

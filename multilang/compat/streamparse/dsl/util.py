"""Arguments of Java constructors."""

from __future__ import annotations

from multilang.compat.streamparse.thrift import JavaObjectArg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_FIELDS = {bool: "bool_arg", int: "long_arg", bytes: "binary_arg", str: "string_arg", float: "double_arg"}


def to_java_arg(arg: Any) -> JavaObjectArg:
    """Return a value as an argument of a Java constructor.

    Raises:
        TypeError: It is no bool, int, float, bytes or str.
    """
    for kind, field in _FIELDS.items():  # a bool is an int, too, and comes first
        if isinstance(arg, kind):
            return JavaObjectArg(**{field: arg})
    raise TypeError(f"an argument of a Java constructor is a bool, int, float, bytes or str, not {arg!r}")


def to_python_arg(java_arg: JavaObjectArg) -> Any:
    """Return the value of an argument of a Java constructor."""
    return next((value for value in vars(java_arg).values() if value is not None), None)


def to_python_arg_list(java_args: Iterable[JavaObjectArg]) -> list[Any]:
    """Return the values of the arguments of a Java constructor."""
    return [to_python_arg(arg) for arg in java_args]

"""Checks that the objects of a user's provider take the calls that the library makes."""

from __future__ import annotations

from multilang.state.errors import WrongProviderError
from multilang.state.serializers import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeAlias

    Calls: TypeAlias = Mapping[str, Sequence[Sequence[Any]]]  # the arguments with which the library calls each method

_LOOKED_AT: set[tuple[type, type]] = set()  # the classes of states and stores whose methods were checked


def class_of(thing: object) -> str:
    """Return the full name of a thing's class, for messages."""
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def is_own(thing: object) -> bool:
    """Return whether the class of a provider, state, store or place is from outside this library."""
    return type(thing).__module__.partition(".")[0] != "multilang"


def look_at(thing: object, base: type, calls: Calls) -> None:
    """Check the methods of a user's object; once for each class."""
    if is_own(thing) and (type(thing), base) not in _LOOKED_AT:
        check_calls(thing, base, calls)
        _LOOKED_AT.add((type(thing), base))


def check_calls(thing: object, base: type, calls: Calls) -> None:
    """Check that an object's methods take these arguments.

    Args:
        thing: A user's object.
        base: The library's class that it extends.
        calls: The arguments of each call, by method.

    Raises:
        WrongProviderError: A method does not take the arguments it will be called with.
    """
    import inspect  # imported here, since only providers of users need it

    for name, wanted in calls.items():
        method = getattr(thing, name)
        where = f"{type(thing).__module__}.{type(thing).__qualname__}.{name}"
        if not callable(method):
            raise WrongProviderError(
                f"{where} is {shown(method)}; define a method, as multilang.state.{base.__name__} has it"
            )
        if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
            raise WrongProviderError(
                f"{where} is a coroutine function, which nobody here awaits; write `def`, without `async`"
            )
        try:
            signature = inspect.signature(method)
        except (TypeError, ValueError):  # a function in C may have no signature
            continue
        for arguments in wanted:
            try:
                signature.bind(*arguments)
            except TypeError as problem:
                call = f"{name}({', '.join(map(repr, arguments))})"
                raise WrongProviderError(
                    f"{where}{signature} is called as {call}, which it does not take ({problem}); define it as "
                    f"multilang.state.{base.__name__} has it, {name}{inspect.signature(getattr(base, name))}"
                ) from None

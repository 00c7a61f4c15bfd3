"""Checks of the classes that a user wrote: of the arguments of their methods, and of the answers of a store."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.store.errors import StateError, WrongProviderError, shown
from multilang.store.interface import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    Calls: TypeAlias = Mapping[str, Sequence[Sequence[Any]]]  # the arguments with which the library calls each method

_LOOKED_AT: set[tuple[type, type]] = set()  # the classes whose methods were checked

# The arguments with which the library calls each method of a store.
_STORE: Calls = {
    "get": (("place", "table", [b"key"]),),
    "list": (("place", "table"),),
    "places": (("state/",),),
    "tables": (("place",),),
    "compare_and_write": (("place", {}, {}), ("place", {}, {}, ["table"], ("new", "table"))),
    "describe": ((),),
    "check": ((),),
    "hurry": ((),),
    "beat": (("place", {}, 1),),
    "beats": (("place",),),
    "end_beats": (("place",),),
    "close": ((),),
}


def class_of(thing: object) -> str:
    """Return the full name of a thing's class, for messages."""
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def is_own(thing: object) -> bool:
    """Return whether the class of a store, provider or state is from outside this library."""
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
        where = f"{class_of(thing)}.{name}"
        if not callable(method):
            raise WrongProviderError(f"{where} is {shown(method)}; define a method, as {_public(base)} has it")
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
                    f"{_public(base)} has it, {name}{inspect.signature(getattr(base, name))}"
                ) from None


def check_attributes(thing: Any) -> None:
    """Check the attributes of a user's store or provider.

    Raises:
        WrongProviderError: It is of the wrong type.
    """
    for attribute in ("durable", "local"):
        found = getattr(thing, attribute)
        if type(found) is not bool:
            raise WrongProviderError(f"{class_of(thing)}.{attribute} is {shown(found)}; write True or False")
    requires = thing.requires
    if not hasattr(requires, "items") or not all(isinstance(each, str) for pair in requires.items() for each in pair):
        raise WrongProviderError(
            f"{class_of(thing)}.requires is {shown(requires)}; write what is imported and what is installed for it, such as "
            '{"psycopg": "psycopg[binary]"}'
        )
    described = thing.describe()
    if not isinstance(described, str):
        raise WrongProviderError(
            f"{class_of(thing)}.describe() returned {shown(described)}; return where it stores, a text for messages"
        )


def checked_store(kind: type[Store], url: str, conf: Mapping[str, Any] | None, setting: str) -> Store:
    """Return a store of a user's class, whose methods take the library's calls, and whose answers are checked.

    Raises:
        ConfigError: It can't be made.
        WrongProviderError: A method or an attribute is not what it has to be.
    """
    name = f"{kind.__module__}.{kind.__qualname__}"
    try:
        store = kind(url, conf, setting)
    except (ConfigError, StateError):
        raise
    except Exception as problem:  # raised by a user's class
        raise ConfigError(f"{setting} {name!r} can't be made: {type(problem).__name__}: {problem}") from problem
    if not {"url", "conf", "setting"} <= store.__dict__.keys():
        raise ConfigError(f"{setting} {name!r}: call super().__init__(url, conf, setting) first in its __init__")
    look_at(store, Store, _STORE)
    check_attributes(store)
    for attribute in ("largest", "portion_rows", "portion_bytes"):
        found = getattr(store, attribute)
        if type(found) is not int or found < 1:
            raise WrongProviderError(f"{name}.{attribute} is {shown(found)}; write a number from 1")
    for method, check in _ANSWERS.items():
        setattr(store, method, check(getattr(store, method), f"{name}.{method}"))
    return store


def _get(method: Callable[..., Any], where: str) -> Callable[..., Any]:
    def get(place: str, table: str, keys: Sequence[bytes]) -> Any:
        found = method(place, table, keys)
        if not isinstance(found, list) or len(found) != len(keys) or not {*map(type, found)} <= {bytes, type(None)}:
            raise WrongProviderError(
                f"{where}({place!r}, {table!r}, {keys!r}) returned {shown(found)}; return a list with the value of each key: bytes, or "
                "None where there is none"
            )
        return found

    return get


def _list(method: Callable[..., Any], where: str) -> Callable[..., Any]:
    def rows(place: str, table: str) -> Iterator[Any]:
        found = method(place, table)
        if not hasattr(found, "__iter__"):
            raise WrongProviderError(
                f"{where}({place!r}, {table!r}) returned {shown(found)}; yield (key, value) one by one"
            )
        for row in found:
            if not isinstance(row, tuple) or [*map(type, row)] != [bytes, bytes]:
                raise WrongProviderError(
                    f"{where}({place!r}, {table!r}) gives {shown(row)}; yield (key, value), both in bytes"
                )
            yield row

    return rows


def _names(method: Callable[..., Any], where: str) -> Callable[..., Any]:
    def names(name: str) -> Any:
        found = method(name)
        if not isinstance(found, list | tuple) or not all(isinstance(each, str) for each in found):
            raise WrongProviderError(f"{where}({name!r}) returned {shown(found)}; return a list of texts")
        return found

    return names


def _write(method: Callable[..., Any], where: str) -> Callable[..., Any]:
    def compare_and_write(*arguments: Any, **named: Any) -> Any:
        done = method(*arguments, **named)
        if type(done) is not bool:
            raise WrongProviderError(
                f"{where}(...) returned {shown(done)}; return True when it is written, or False when an expected row is another one"
            )
        return done

    return compare_and_write


_ANSWERS = {"get": _get, "list": _list, "places": _names, "tables": _names, "compare_and_write": _write}


def _public(base: type) -> str:
    """Return the name under which users import a class."""
    return f"{base.__module__.rpartition('.')[0]}.{base.__name__}"

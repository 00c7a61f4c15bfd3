"""Components written in Java, which a cluster's worker runs itself."""

from __future__ import annotations

from multilang.topology.errors import TopologyError
from multilang.topology.shell import Foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from multilang.component.streams import Stream

_WORD = r"[A-Za-z_$][\w$]*"


class JavaLong(int):
    """A number that is a ``Long`` in Java, however small; other integers are ``Integer`` if they fit."""


class JavaObject:
    """An object that Java makes: by a constructor, or by a static method, and by calls of methods on it.

    >>> config = JavaObject.static("org.apache.storm.kafka.spout.KafkaSpoutConfig", "builder", "kafka:9092", "clicks")
    >>> config = config.call("setProp", "group.id", "shop").call("build")
    >>> spout = JavaSpout(JavaObject("org.apache.storm.kafka.spout.KafkaSpout", config), output_fields=[...])

    No Java runs before the topology is submitted: a JDK on the submitting machine then makes the object, and checks names
    and types as any Java compiler does.

    Args:
        java_class: The class, ``"shop.Clicks"``; an inner one as ``"shop.Clicks$Reader"``.
        args: The constructor's arguments: None, booleans, numbers, texts, lists, dicts with texts as keys, JavaObjects.

    Raises:
        TopologyError: A name or an argument can't be Java's.
    """

    __slots__ = ("args", "base", "java_class", "method", "returns")

    def __init__(self, java_class: str, *args: Any) -> None:
        self._set(java_class, None, None, args, True)

    @classmethod
    def static(cls, java_class: str, method: str, *args: Any) -> JavaObject:
        """Return what a static method returns.

        Args:
            java_class: The class.
            method: The method.
            args: Its arguments.
        """
        return cls._made(java_class, None, method, args)

    def call(self, method: str, *args: Any) -> JavaObject:
        """Return what a method of this object returns, such as a builder's ``build``.

        Args:
            method: The method.
            args: Its arguments.
        """
        return self._made(self.java_class, self, method, args)

    def do(self, method: str, *args: Any) -> JavaObject:
        """Return this object after a call of a method that returns nothing, such as a setter.

        Args:
            method: The method.
            args: Its arguments.
        """
        return self._made(self.java_class, self, method, args, returns=False)

    @classmethod
    def _made(
        cls, java_class: str, base: JavaObject | None, method: str, args: tuple[Any, ...], returns: bool = True
    ) -> JavaObject:
        made = cls.__new__(cls)
        made._set(java_class, base, method, args, returns)
        return made

    def _set(
        self, java_class: str, base: JavaObject | None, method: str | None, args: tuple[Any, ...], returns: bool
    ) -> None:
        check_class(java_class, "JavaObject")
        if method is not None and not _is_name(method, _WORD):
            raise TopologyError(f"JavaObject({java_class!r}): {method!r} is no name of a method")
        for each in args:
            _check_value(each, f"JavaObject({java_class!r})")
        self.java_class = java_class
        self.base = base
        self.method = method
        self.args = args
        self.returns = returns

    def __repr__(self) -> str:
        if self.base is not None:
            return f"{self.base!r}.{self.method}(...)"
        return f"{self.java_class}{'' if self.method is None else '.' + self.method}(...)"


class JavaComponent(Foreign):
    """The base of JavaSpout and JavaBolt; use those.

    Args:
        what: The class, or a JavaObject if its constructor needs more than ``args`` can be. A spout is an ``IRichSpout``, a bolt
            an ``IRichBolt``, as their base classes in Storm are.
        args: The constructor's arguments: booleans, integers, floats, texts and bytes, which the constructor takes as Boolean,
            Integer (Long if they are too large, or a JavaLong), Double, String and ByteBuffer. A worker finds no constructor
            with ``int`` or ``boolean``: for these, give a JavaObject.
        output_fields: The fields of the default stream, as the class declares them.
        output_streams: Further streams by name, as the class declares them.
        conf: The component's own conf, the same as ``conf=`` of the builder.

    Raises:
        TopologyError: The class, an argument or a stream is malformed.
    """

    __slots__ = ("args", "made")

    def __init__(
        self,
        what: str | JavaObject,
        args: Sequence[Any] = (),
        output_fields: Sequence[str] | Mapping[str, Any] | None = None,
        output_streams: Mapping[str, Sequence[str] | Mapping[str, Any] | Stream] | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        kind = type(self).__name__
        if isinstance(what, JavaObject):
            if args:
                raise TopologyError(f"{kind}({what!r}): the arguments belong to the JavaObject; leave args= out")
            self.made: str | JavaObject = what
        else:
            check_class(what, kind)
            self.made = what
        if isinstance(args, str):
            raise TopologyError(f"{kind}({what!r}): args is a list of arguments; write [{args!r}]")
        self.args = list(args)
        for each in self.args:
            if not isinstance(each, bool | int | float | str | bytes):
                raise TopologyError(
                    f"{kind}({what!r}): a worker takes booleans, numbers, texts and bytes as arguments, not {each!r}; give a "
                    f"JavaObject({what!r}, ...) for anything else"
                )
            _check_value(each, f"{kind}({what!r})")
        self._declare(what, output_fields, output_streams, conf)

    @property
    def java_class(self) -> str:
        """The name of the class."""
        return self.made.java_class if isinstance(self.made, JavaObject) else self.made

    @property
    def description(self) -> str:
        """The class, in messages and pictures."""
        return self.java_class

    def to_dict(self) -> dict[str, Any]:
        """Return the component in JSON's types."""
        return {"java": self.java_class, "args": len(self.args)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.made!r})"


class JavaSpout(JavaComponent):
    """A spout of a class written in Java: ``JavaSpout("shop.Clicks", ["/clicks"], output_fields=["page"])``; see JavaComponent."""

    __slots__ = ()


class JavaBolt(JavaComponent):
    """A bolt of a class written in Java: ``JavaBolt("shop.Enrich", output_fields=["page", "place"])``; see JavaComponent."""

    __slots__ = ()


def check_class(name: object, what: str) -> None:
    """Raise TopologyError if ``name`` is no name of a Java class. ``what`` is the user of the name, for the message."""
    if not isinstance(name, str) or not _is_name(name, rf"{_WORD}(\.{_WORD})*"):
        raise TopologyError(f"{what}: {name!r} is no name of a Java class, such as 'shop.Clicks'")


def _is_name(name: str, pattern: str) -> bool:
    import re  # here, since most processes of components need none

    return re.fullmatch(pattern, name, re.ASCII) is not None


def java_class_names(made: str | JavaObject) -> Iterator[str]:
    """Return the names of all classes of which Java makes an object."""
    if isinstance(made, str):
        yield made
        return
    if made.base is not None:
        yield from java_class_names(made.base)
    else:
        yield made.java_class
    for each in made.args:
        if isinstance(each, JavaObject):
            yield from java_class_names(each)


def _check_value(value: Any, where: str) -> None:
    if isinstance(value, list | tuple):
        for each in value:
            _check_value(each, where)
    elif isinstance(value, dict):
        for key, each in value.items():
            if not isinstance(key, str):
                raise TopologyError(f"{where}: {key!r} is the key of a dict, and keys are texts; write {str(key)!r}")
            _check_value(each, where)
    elif isinstance(value, bool | str | bytes | JavaObject) or value is None:
        return
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise TopologyError(f"{where}: {value} is too large for a number of Java's; give it as text")
    elif not isinstance(value, float) or value != value or abs(value) == float("inf"):
        raise TopologyError(f"{where}: {value!r} can't be an argument of Java's")


def fits_int(value: int) -> bool:
    """Return whether a number becomes an Integer in Java, and not a Long."""
    return -(2**31) <= value < 2**31 and not isinstance(value, JavaLong)

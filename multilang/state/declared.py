"""The arguments that a component was declared with, by which one source or bolt differs from another.

Digests of the arguments are stored: enough to see that one changed, and nothing of its value. An argument that is a
secret by its name is left out.
"""

from __future__ import annotations

from zlib import crc32

from multilang.helpers.masked import is_secret
from multilang.protocol.codec import dumps, reason_against
from multilang.state.replayable import ReplayableSpout
from multilang.store.errors import StateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_DEPTH = 4  # of values inside values
_ITEMS = 30  # of one value

IDENTITY = "identity()"


class Declared:
    """The class of a component and its arguments.

    Attributes:
        name: The name of its class.
        arguments: The digests of its attributes before it was initialized, by name.
        identity: The value of the component's ``identity``; None: it has none.
    """

    __slots__ = ("arguments", "identity", "name")

    def __init__(self, name: str, arguments: Mapping[str, int], identity: Any = None) -> None:
        self.name = name
        self.arguments = dict(arguments)
        self.identity = identity

    @classmethod
    def of(cls, component: object, conf: Mapping[str, Any] | None = None) -> Declared:
        """Return the declaration of a component, before it is initialized.

        Args:
            component: The component.
            conf: Its own conf.

        Raises:
            StateError: Its ``identity`` can't be stored.
        """
        given = {name: value for name, value in getattr(component, "__dict__", {}).items() if not is_secret(name)}
        arguments = {
            name: crc32(_text(value, _DEPTH).encode("utf-8", "surrogatepass")) for name, value in given.items()
        }
        for key, value in (conf or {}).items():
            if not key.startswith("topology.") and not is_secret(key):
                arguments[f"conf {key}"] = crc32(_text(value, _DEPTH).encode("utf-8", "surrogatepass"))
        name = type(component).__name__
        identity = component.identity() if isinstance(component, ReplayableSpout) else None
        reason = reason_against(identity)
        if reason is not None:
            raise StateError(
                f"{name}.identity() returned {identity!r}, which can't be stored ({reason}); return what identifies this source, "
                "such as a path or a topic, as JSON has it"
            )
        return cls(name, arguments, identity)

    def to_json(self) -> dict[str, Any]:
        """Return it as it is stored."""
        return {"class": self.name, "arguments": self.arguments, "identity": self.identity}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Declared:
        """Return the declaration that was stored."""
        return cls(found["class"], found["arguments"], found["identity"])

    def changed(self, now: Declared) -> list[str]:
        """Return the names of the arguments that differ in ``now``; nothing where one of them is unknown."""
        if self.identity is not None and now.identity is not None:
            return [] if self.identity == now.identity else [IDENTITY]
        names = {*self.arguments, *now.arguments}
        return sorted(each for each in names if self.arguments.get(each) != now.arguments.get(each))

    def is_like(self, other: Declared) -> bool:
        """Return whether both are known to be declared alike."""
        same = self.name == other.name and (self.identity is None) == (other.identity is None)
        return same and not self.changed(other)


def others_identity(component: str, before: Declared, now: Declared) -> str | None:
    """Return the reason why a source must not resume from the position of another one; None if it may."""
    if before.identity is None or now.identity is None or before.identity == now.identity:
        return None
    return (
        f"the stored position of {component!r} is one in {dumps(before.identity)}, and {component!r} reads {dumps(now.identity)} now: give "
        f"the new source another name; if it is to begin at the beginning: multilang state rm TOPOLOGY {component}; if the position is "
        "right there, too: multilang state accept TOPOLOGY"
    )


def changed_text(component: str, before: Declared, now: Declared, is_source: bool) -> str | None:
    """Return the warning about a component that was declared in another way, and continues; None: there is none."""
    if before.name != now.name:
        return (
            f"what is stored of {component!r} was written by {before.name}, and {component!r} is {now.name} now, which continues with it. If that "
            f"is wrong: multilang state rm TOPOLOGY {component}"
        )
    changed = before.changed(now) if is_source else []
    if not changed:
        return None
    return (
        f"the position of {component!r} was stored when {now.name} had other arguments ({', '.join(changed)}), and it resumes from there. If "
        f"it reads something else now, that is wrong: multilang state rm TOPOLOGY {component}. If {now.name} defines identity(), which "
        "returns what it reads, that is compared instead"
    )


def _text(value: object, depth: int) -> str:
    """Return a text that is the same in each process for equal values."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    kind = type(value).__qualname__
    if not depth:
        return kind
    if isinstance(value, list | tuple):
        return f"{kind}{len(value)}{[_text(each, depth - 1) for each in value[:_ITEMS]]}"
    if isinstance(value, set | frozenset):
        return f"{kind}{len(value)}{_sorted((_text(each, depth - 1) for each in value), len(value))}"
    if isinstance(value, dict):
        pairs = (f"{_text(key, depth - 1)}:{_text(item, depth - 1)}" for key, item in value.items())
        return f"{kind}{len(value)}{_sorted(pairs, len(value))}"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{kind} {value.__qualname__}"
    text = repr(value) if type(value).__repr__ is not object.__repr__ else ""
    if text and " at 0x" not in text:
        return f"{kind} {text}"
    return f"{kind}{_text(getattr(value, '__dict__', None), depth - 1)}"


def _sorted(texts: Iterable[str], count: int) -> list[str]:
    return sorted(texts) if count <= _ITEMS else []

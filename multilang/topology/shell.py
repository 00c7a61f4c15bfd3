"""Components in any language: commands that speak Storm's multi-lang protocol (Storm's ShellSpout and ShellBolt)."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.component.streams import Stream, declared_streams
from multilang.topology.errors import TopologyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class Foreign:
    """The base of components that are not written in Python: it has their streams and conf."""

    __slots__ = ("component_conf", "streams")

    component_conf: dict[str, Any]
    streams: Mapping[str, Stream]

    @property
    def description(self) -> str:
        """The component, in messages and pictures."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return the component in JSON's types."""
        raise NotImplementedError

    def declared_streams(self) -> dict[str, Stream]:
        """Return all output streams by name."""
        return dict(self.streams)

    def _declare(
        self,
        what: object,
        output_fields: Sequence[str] | Mapping[str, Any] | None,
        output_streams: Mapping[str, Sequence[str] | Mapping[str, Any] | Stream] | None,
        conf: Mapping[str, Any] | None,
    ) -> None:
        """Set the streams and the conf. ``what`` names the program in a message."""
        try:
            self.streams = declared_streams(output_fields, output_streams)
        except ConfigError as problem:
            raise TopologyError(f"{type(self).__name__}({what!r}): {problem}") from problem
        self.component_conf = dict(conf or {})


class ShellComponent(Foreign):
    """The base of ShellSpout and ShellBolt; use those.

    Args:
        command: The program and its arguments, which are not read by a shell.
        output_fields: The fields of the default stream, as in a Python component's class.
        output_streams: Further streams by name, as in a Python component's class.
        conf: The component's own conf, the same as ``conf=`` of the builder.
        change_child_cwd: Whether a worker starts the command in the jar's ``resources/``. If not, it starts it in its
            own directory, where blobs are (Storm's ``changeChildCWD(false)``).

    Raises:
        TopologyError: The command or a stream is malformed.
    """

    __slots__ = ("change_child_cwd", "command")

    def __init__(
        self,
        command: Sequence[str],
        output_fields: Sequence[str] | Mapping[str, Any] | None = None,
        output_streams: Mapping[str, Sequence[str] | Mapping[str, Any] | Stream] | None = None,
        conf: Mapping[str, Any] | None = None,
        change_child_cwd: bool = True,
    ) -> None:
        kind = type(self).__name__
        if isinstance(command, str):
            raise TopologyError(f"{kind}: the command is a list of words; write {command.split()!r} for {command!r}")
        words: list[Any] = list(command)
        if not words or not all(isinstance(word, str) and "\0" not in word for word in words):
            raise TopologyError(
                f"{kind}: the command is a list of words, such as ['node', 'split.js'], not {command!r}"
            )
        if not words[0]:
            raise TopologyError(f"{kind}: the command {command!r} names no program")
        self.command: list[str] = words
        if not isinstance(change_child_cwd, bool):
            raise TopologyError(
                f"{kind}({self.command!r}): change_child_cwd is {change_child_cwd!r}; write True (the command is started in "
                "the jar's resources/) or False (in the worker's directory)"
            )
        self.change_child_cwd = change_child_cwd
        self._declare(self.command, output_fields, output_streams, conf)

    @property
    def description(self) -> str:
        """The command line."""
        return " ".join(self.command)

    def to_dict(self) -> dict[str, Any]:
        """Return the component in JSON's types."""
        return {"command": self.command, "change_child_cwd": self.change_child_cwd}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.command!r})"


class ShellSpout(ShellComponent):
    """A spout in another language: ``ShellSpout(["ruby", "words.rb"], output_fields=["word"])``; see ShellComponent."""

    __slots__ = ()


class ShellBolt(ShellComponent):
    """A bolt in another language: ``ShellBolt(["node", "split.js"], output_fields=["word"])``; see ShellComponent."""

    __slots__ = ()


def program_of(component: Any) -> ShellComponent | None:
    """Return the program that a component is, or that each task of a Python component runs; None for all others."""
    found = component
    if not isinstance(component, ShellComponent):
        if getattr(component, "wrapped", None) is not None:
            from multilang.component.wrapper import innermost

            component = innermost(component)
        found = getattr(component, "shell", None)
    return found if isinstance(found, ShellComponent) else None

"""streamparse's spouts."""

from __future__ import annotations

from multilang.compat.pystorm import spout as pystorm_spout
from multilang.compat.streamparse.dsl.spout import JavaSpoutSpec, ShellSpoutSpec
from multilang.compat.streamparse.storm.component import Component

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class JavaSpout(Component):
    """A spout in Java, of which only the spec is made here."""

    @classmethod
    def spec(
        cls,
        name: Any = None,
        serialized_java: Any = None,
        full_class_name: Any = None,
        args_list: Any = None,
        par: Any = 1,
        config: Any = None,
        outputs: Any = None,
    ) -> Any:
        """Return the spout's spec for a topology."""
        return JavaSpoutSpec(cls, name, serialized_java, full_class_name, args_list, None, par, config, outputs)


class ShellSpout(Component):
    """A spout that a command starts."""

    @classmethod
    def spec(
        cls,
        name: Any = None,
        command: Any = None,
        script: Any = None,
        par: Any = None,
        config: Any = None,
        outputs: Any = None,
    ) -> Any:
        """Return the spout's spec for a topology."""
        return ShellSpoutSpec(cls, name, command, script, None, par, config, outputs)


class Spout(pystorm_spout.Spout, ShellSpout):
    """A spout; see pystorm's, and Component for its declarations."""

    @classmethod
    def spec(cls, name: Any = None, par: Any = None, config: Any = None) -> Any:  # type: ignore[override]
        """Return the spout's spec for a topology."""
        place = f"{cls.__module__}.{cls.__name__}"
        return ShellSpoutSpec(cls, name, "streamparse_run", place, None, par, config, cls.outputs)

    def emit_many(self, tuples: Any, *args: Any, **kwargs: Any) -> None:
        """Send several tuples in the same way, as before streamparse 3; the other arguments are those of ``emit``."""
        for tup in tuples:
            self.emit(tup, *args, **kwargs)


class ReliableSpout(pystorm_spout.ReliableSpout, Spout):
    """A reliable spout; see pystorm's, and Component for its declarations."""

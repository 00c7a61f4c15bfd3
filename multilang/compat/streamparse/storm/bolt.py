"""streamparse's bolts."""

from __future__ import annotations

from multilang.compat.pystorm import bolt as pystorm_bolt
from multilang.compat.streamparse.dsl.bolt import JavaBoltSpec, ShellBoltSpec
from multilang.compat.streamparse.storm.component import Component

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class JavaBolt(Component):
    """A bolt in Java, of which only the spec is made here."""

    @classmethod
    def spec(
        cls,
        name: Any = None,
        serialized_java: Any = None,
        full_class_name: Any = None,
        args_list: Any = None,
        inputs: Any = None,
        par: Any = 1,
        config: Any = None,
        outputs: Any = None,
    ) -> Any:
        """Return the bolt's spec for a topology."""
        return JavaBoltSpec(cls, name, serialized_java, full_class_name, args_list, inputs, par, config, outputs)


class ShellBolt(Component):
    """A bolt that a command starts."""

    @classmethod
    def spec(
        cls,
        name: Any = None,
        command: Any = None,
        script: Any = None,
        inputs: Any = None,
        par: Any = None,
        config: Any = None,
        outputs: Any = None,
    ) -> Any:
        """Return the bolt's spec for a topology."""
        return ShellBoltSpec(cls, name, command, script, inputs, par, config, outputs)


class Bolt(pystorm_bolt.Bolt, ShellBolt):
    """A bolt; see pystorm's, and Component for its declarations."""

    @classmethod
    def spec(cls, name: Any = None, inputs: Any = None, par: Any = None, config: Any = None) -> Any:  # type: ignore[override]
        """Return the bolt's spec for a topology."""
        place = f"{cls.__module__}.{cls.__name__}"
        return ShellBoltSpec(cls, name, "streamparse_run", place, inputs, par, config, cls.outputs)

    def emit_many(self, tuples: Any, *args: Any, **kwargs: Any) -> None:
        """Send several tuples in the same way, as before streamparse 3; the other arguments are those of ``emit``."""
        for tup in tuples:
            self.emit(tup, *args, **kwargs)


class BatchingBolt(pystorm_bolt.BatchingBolt, Bolt):
    """A batching bolt; see pystorm's, and Component for its declarations."""


class TicklessBatchingBolt(pystorm_bolt.TicklessBatchingBolt, BatchingBolt):
    """A batching bolt without ticks; see pystorm's, and Component for its declarations."""

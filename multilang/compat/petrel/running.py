"""Ordinary components of this library around components of Petrel's."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from multilang.compat.adapters import around, own
from multilang.compat.petrel import storm
from multilang.compat.storm import running as storm_running
from multilang.component.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_caught: list[Any] | None = None  # the components whose run() is called, while a task makes its own


class BoltTask(storm_running.BoltTask):
    """The calls of a running bolt; see storm.py's."""

    tuple_type = storm.Tuple
    goes_on = False
    _wants_ids = False

    def emit(
        self,
        tup: Any,
        stream: Any = None,
        anchors: Any = (),
        directTask: Any = None,  # noqa: N803 - Petrel's name
        need_task_ids: bool = False,
    ) -> Any:
        self._wants_ids = need_task_ids
        ids = super().emit(tup, stream, anchors, directTask)
        return ids if need_task_ids else None

    def _emitter(self, collector: Any) -> Callable[..., Any]:
        return lambda tup, second, third, task: collector.emit(tup, second, third, task, self._wants_ids)


class SpoutTask(storm_running.SpoutTask):
    """The calls of a running spout; see storm.py's."""

    _wants_ids = False

    def emit(
        self,
        tup: Any,
        stream: Any = None,
        id: Any = None,
        directTask: Any = None,  # noqa: N803 - Petrel's name
        need_task_ids: bool = False,
    ) -> Any:
        self._wants_ids = need_task_ids
        ids = super().emit(tup, stream, id, directTask)
        return ids if need_task_ids else None

    def _emitter(self, collector: Any) -> Callable[..., Any]:
        return lambda tup, second, third, task: collector.emit(tup, second, third, task, self._wants_ids)


class _Made:
    def made(self) -> Any:
        """Return the instance that a task runs: the one whose run() the function ``run`` of its script calls."""
        given = super().made()  # type: ignore[misc]
        return _of_script(given) or given


class BoltAdapter(_Made, storm_running.BoltAdapter):
    """A bolt of Petrel's as a component of this library; ``adapted`` makes it."""

    task_type = BoltTask


class SpoutAdapter(_Made, storm_running.SpoutAdapter):
    """A spout of Petrel's as a component of this library; ``adapted`` makes it."""

    task_type = SpoutTask

    def activate(self) -> None:
        """Do nothing: Petrel's spouts are not told."""

    def deactivate(self) -> None:
        """Do nothing: Petrel's spouts are not told."""


def adapted(given: Any, output_fields: Any = None, output_streams: Any = None) -> Any:
    """Return a component of this library that runs one of Petrel's.

    Args:
        given: The class, of which each task makes its own instance, or an instance. One of this library's own is returned as it
            is, with the fields and streams given here.
        output_fields: The fields of the default stream.
        output_streams: Further streams by name.

    Raises:
        ConfigError: It is neither a bolt nor a spout of Petrel's.
    """
    component = own(given, output_fields, output_streams)
    if component is not None:
        return component
    kind = given if isinstance(given, type) else type(given)
    if issubclass(kind, storm.Bolt | storm.BasicBolt):
        return around(BoltAdapter, given, output_fields, output_streams)
    if issubclass(kind, storm.Spout):
        return around(SpoutAdapter, given, output_fields, output_streams)
    raise ConfigError(
        f"{kind.__name__} is neither a Bolt, a BasicBolt nor a Spout of petrel.emitter's, so that there is nothing to run"
    )


def run(component: Any) -> None:
    """Run a component of Petrel's as the process of one task, until its input ends.

    While a task looks for the component that its script runs, the component is only noted.
    """
    if _caught is not None:
        _caught.append(component)
        return
    from multilang.child.process import run_component

    run_component(adapted(component))


def _of_script(given: Any) -> Any:
    """Return the component that the script of a declared one runs, as Petrel's own processes do; None without one."""
    global _caught
    script = getattr(given, "script", None)
    own = sys.modules.get(type(given).__module__)
    if not isinstance(script, str) or own is None:
        return None
    name = script.removesuffix(".py")
    module: Any = own
    if name not in (own.__name__.rpartition(".")[2], os.path.basename(getattr(own, "__file__", None) or "")[:-3]):
        try:
            module = import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            return None
    start = getattr(module, "run", None)
    if not callable(start):
        return None
    before, _caught = _caught, []
    try:
        start()
        return _caught[-1] if _caught else None
    finally:
        _caught = before

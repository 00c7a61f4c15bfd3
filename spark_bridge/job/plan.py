"""The form that a topology has on Spark: what is declared, without checkpoints and coordination, and sent to executors that can't
import it. What has no form there is refused before any job starts.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections import Counter
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle as _cloudpickle

from multilang.component.wrapper import innermost
from multilang.coordination import BatchBoltExecutor, CoordinatedBolt
from multilang.state.bolt import Stateful
from multilang.streams.marks import PassingBolt
from multilang.topology.errors import TopologyError, did_you_mean
from multilang.topology.transform import transformed
from multilang.transactional.maps.base import maps_of
from multilang.transactional.parts import coordinator_in
from multilang.windowing.bolt import WindowedBolt
from multilang.windowing.stateful import StatefulWindowedBolt
from spark_bridge.job.spouts import check_bound
from spark_bridge.job.state import States

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import ModuleType

    from pyspark.sql import SparkSession

    from multilang.state import StateProvider
    from multilang.store import Store
    from multilang.topology.model import Topology
    from spark_bridge.job.state import NoStates


def is_transactional(topology: Topology) -> bool:
    """Return whether TransactionalTopologyBuilder made the topology."""
    return coordinator_in(topology) is not None


def without_checkpoints(topology: Topology) -> Topology:
    """Return the topology with all that its components ask for but checkpoints: Spark saves states in its own way."""
    return transformed(topology.declared, leaving=Stateful.transformations)


def as_declared(topology: Topology) -> Topology:
    """Return the topology as its author declared it, without checkpoints and coordination.

    Raises:
        TopologyError: A component runs in a wrapper that has no form on Spark; the message names the component.
    """
    declared = without_checkpoints(topology)
    for spec in declared.components.values():
        wrapper = spec.component
        if getattr(wrapper, "wrapped", None) is None or is_transactional(topology):
            continue
        if isinstance(wrapper, PassingBolt):  # a batch is complete without watermarks
            spec.component, spec.factory = wrapper.wrapped, wrapper.factory
            continue
        if isinstance(wrapper, CoordinatedBolt | BatchBoltExecutor):
            raise TopologyError(
                f"bolt {spec.id!r} ({type(innermost(wrapper)).__name__}) works on one id after the other, each with a beginning and "
                "an end, as requests of DRPC do, which Spark's batches don't have: run the topology on the embedded cluster or "
                "on Storm, or make it a transactional one (TransactionalTopologyBuilder), whose id is the batch"
            )
        raise TopologyError(
            f"{spec.kind} {spec.id!r} runs inside a {type(wrapper).__name__}, which has no form on Spark: run the topology on the "
            "embedded cluster or on Storm"
        )
    return declared


# Methods of stateful bolts that have no place on Spark: name, when they are called elsewhere, what to use instead.
_LATE_HOOKS = (
    ("pre_commit", "committed", "pre_prepare"),
    ("pre_rollback", "rolled back", "init_state, which a new bolt is given after each rollback"),
)


def check_state(topology: Topology, states: States | NoStates, spark: SparkSession) -> None:
    """Raise TopologyError for a state that executors can't reach, or a bolt that acts later than Spark lets it."""
    if isinstance(states, States) and states.is_local and not str(spark.sparkContext.master).startswith("local"):
        raise TopologyError(
            f"the state is in the {states.describe()}, which executors on other machines can't read: use a Redis"
        )
    for id, spec in topology.bolts.items():
        if not isinstance(spec.component, Stateful):
            continue
        for hook, when, instead in _LATE_HOOKS:
            if getattr(type(spec.component), hook) not in (
                getattr(Stateful, hook),
                getattr(StatefulWindowedBolt, hook),
            ):
                raise TopologyError(
                    f"bolt {id!r} does something in {hook}, and on Spark it is not there any more when its state is {when}: do it "
                    f"in {instead}, or run the topology on the embedded cluster or on Storm"
                )


def windowed_bolts(topology: Topology) -> list[str]:
    """Return the bolts that work on windows."""
    return [id for id, spec in topology.bolts.items() if isinstance(spec.component, WindowedBolt)]


def check_query(topology: Topology) -> None:
    """Raise TopologyError for windows without state in a query, whose rows are done with each batch."""
    for id in windowed_bolts(topology):
        bolt = topology.components[id].component
        if not isinstance(bolt, Stateful):
            raise TopologyError(
                f"bolt {id!r} ({type(bolt).__name__}) keeps tuples in windows beyond their batch, and they would be lost with the query: "
                "make it a StatefulWindowedBolt, whose windows are in the state"
            )


def check_spouts(
    topology: Topology,
    sourced: set[str],
    limits: Mapping[str, int],
    *,
    is_transactional: bool,
    is_exact: bool,
) -> None:
    """Raise TopologyError for a spout without a source that needs one or has no end, and for a wrong limit.

    Args:
        topology: The topology.
        sourced: The spouts with sources.
        limits: Spout id -> how many tuples it may emit at most.
        is_transactional: Whether the run is one transaction.
        is_exact: Whether the run's states are aligned exactly.
    """
    spouts = topology.spouts
    for id, limit in limits.items():
        if id not in spouts or id in sourced:
            why = "has a source" if id in sourced else f"is no spout; {did_you_mean(id, spouts)}"
            raise TopologyError(f"limits: {id!r} {why}")
        if type(limit) is not int or limit < 0:
            raise TopologyError(f"limits: {id!r} is bounded by {limit!r}; use a number of tuples")
    for id, spec in spouts.items():
        if id not in sourced and is_transactional:
            raise TopologyError(
                f"spout {id!r} makes transactions, and here the rows of its source are one: give it a source, "
                f"{{{id!r}: rdd}}"
            )
        if id not in sourced and is_exact:
            raise TopologyError(
                f"spout {id!r} has no source, and with exact alignment what fails is read again from the start: give it "
                f"one, {{{id!r}: rdd}}"
            )
        if id not in sourced:
            check_bound(spec, limits.get(id))


def outputs_of(topology: Topology, wanted: Iterable[str | tuple[str, str]] | None) -> list[tuple[str, str]]:
    """Return the streams to keep, as (component, stream)."""
    every = [(id, stream) for id, spec in topology.components.items() for stream in spec.streams]
    if wanted is None:
        read = {(input_.component, input_.stream) for spec in topology.bolts.values() for input_ in spec.inputs}
        return [key for key in every if key not in read and topology.components[key[0]].kind == "bolt"]
    found: list[tuple[str, str]] = []
    for each in [wanted] if isinstance(wanted, str) else wanted:
        keys = [key for key in every if key == each or key[0] == each]
        if not keys:
            component = each if isinstance(each, str) else each[0]
            raise TopologyError(
                f"outputs: there is no stream {each!r}; {did_you_mean(str(component), {key[0] for key in every})}"
            )
        found += [key for key in keys if key not in found]
    return found


def check_maps(topology: Topology, master: str) -> None:
    """Raise TopologyError for a map among a bolt's attributes that the bolt's tasks can't reach."""
    for spec in topology.bolts.values():
        for found in maps_of(innermost(spec.component)):
            if not found.backing.durable or (found.backing.local and not master.startswith("local")):
                raise TopologyError(
                    f"bolt {spec.id!r} updates a map ({found.backing.describe()}), which the executors of {master} don't share: "
                    "give it one on a server, such as a RedisBacking"
                )


cloudpickle: Any = _cloudpickle
_INSTALLED_ALWAYS = frozenset(("multilang", "spark_bridge", "pyspark"))
_users: Counter[str] = Counter()  # module -> the number of current runs that use it: a session may have several
_USERS = Lock()


@contextmanager
def by_value(topology: Topology, *kinds: type[StateProvider | Store]) -> Iterator[None]:
    """Pickle the modules of the topology, and of its state provider and store, whole in this context, unless they are installed.

    Raises TopologyError, with the component's id or the class, when one can't be pickled.
    """
    taken: list[ModuleType] = []
    try:
        taken.extend(module for module in _modules(topology, kinds) if _take(module))
        for spec in topology.components.values():
            try:
                cloudpickle.dumps(spec)
            except Exception as error:
                raise TopologyError(
                    f"{spec.kind} {spec.id!r} can't be sent to Spark's executors ({error}): make in initialize() what "
                    "can't be pickled, such as connections, files and locks"
                ) from error
        try:
            cloudpickle.dumps(kinds)
        except Exception as error:
            raise TopologyError(
                f"{' and '.join(map(str, kinds))} can't be sent to Spark's executors ({error}): make in its methods what can't be "
                "pickled, such as connections and locks, not in its module"
            ) from error
        yield
    finally:
        for module in taken:
            _let_go(module)


def _take(module: ModuleType) -> bool:
    """Register the module to be pickled whole. Return False if somebody else has registered it already."""
    with _USERS:
        if not _users[module.__name__]:
            if module.__name__ in cloudpickle.list_registry_pickle_by_value():
                return False
            cloudpickle.register_pickle_by_value(module)
        _users[module.__name__] += 1
    return True


def _let_go(module: ModuleType) -> None:
    with _USERS:
        _users[module.__name__] -= 1
        if not _users[module.__name__]:
            cloudpickle.unregister_pickle_by_value(module)


def _modules(topology: Topology, kinds: Iterable[type]) -> Iterator[ModuleType]:
    """Return the modules that are not installed: those of the topology, its components, and its provider and store,
    and in their folders.
    """
    named: set[Any] = {topology.module}
    named.update(each.__module__ for kind in kinds for each in kind.__mro__)
    for spec in topology.components.values():
        inner = innermost(spec.component)
        named.update(each.__module__ for each in type(inner).__mro__)
        given = getattr(inner, "given", None)  # a component of another library's, in an adapter of this one
        named.update(each.__module__ for each in getattr(given, "__mro__", type(given).__mro__))
        for input_ in spec.inputs:
            named.update(type(each).__module__ for each in (input_.grouping, input_.grouping.custom) if each)
    folders = {folder for name in named if (folder := _folder(sys.modules.get(name)))}
    home = None if topology.home is None else topology.home.root + os.sep
    for name, module in list(sys.modules.items()):
        if name == "__main__" or getattr(module, "__name__", None) != name:
            continue
        folder = _folder(module)
        if folder in folders or (home is not None and folder is not None and f"{folder}{os.sep}".startswith(home)):
            yield module


def _folder(module: ModuleType | None) -> str | None:
    """Return the folder of a module that is not installed."""
    file = getattr(module, "__file__", None)
    if module is None or not file or module.__name__.partition(".")[0] in _INSTALLED_ALWAYS:
        return None
    folder = os.path.dirname(os.path.abspath(file))
    return None if any(folder == path or folder.startswith(path + os.sep) for path in _libraries()) else folder


@cache
def _libraries() -> frozenset[str]:
    """Return the folders of installed packages.

    The answer is cached, because Python computes the paths anew at each call.
    """
    paths = sysconfig.get_paths()
    return frozenset(paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib"))

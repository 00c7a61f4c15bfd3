"""The work of ``multilang state``: read and change the stored state of a topology that is not running."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING
from uuid import uuid4

from multilang.settings import PARENT, POSITIONS, STORE
from multilang.state.api import KeyValueState
from multilang.state.checked import (
    check_provider,
    epoch_of,
    items_of,
    names_of,
    position_of,
    state_of,
    tasks_of,
    txids_of,
)
from multilang.state.declared import Declared
from multilang.state.names import (
    COMMITTED,
    COMMITTING,
    EVERY_KEY,
    SHAPE_KEY,
    SPOUT,
    STATE_KEY,
    TASKS_KEY,
    TOKEN_KEY,
    WHOLE_KEY,
    namespace,
    split_namespace,
)
from multilang.state.positions import accept_positions, move_positions, positions_url, saved_positions
from multilang.state.providers import provider_of
from multilang.state.serializers import as_key
from multilang.state.shape import SOURCE, Contents, Shape, differences
from multilang.state.source import SourceExecutor
from multilang.state.witness import Witness
from multilang.store.errors import StateError
from multilang.topology.javahash import task_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from multilang.topology.model import Topology

    Replacements: TypeAlias = dict[str, dict[Any, Any]]

COORDINATOR = namespace(SPOUT, 0)
FORMAT = 1
_EXPORTED = {"shape": SHAPE_KEY, "token": TOKEN_KEY}  # what the header has of the checkpoint spout's state


class StoredStates:
    """All states that a topology's provider has stored.

    Args:
        topology: The topology.
        conf: Settings that override those of the topology's own conf.

    Raises:
        StateError: The provider stores nothing, or can't be reached now.
    """

    def __init__(self, topology: Topology, conf: Mapping[str, Any]) -> None:
        self.topology = topology
        own = {"topology.name": topology.name, "storm.id": f"{topology.name}-{uuid4().hex}"}
        self.conf = {PARENT: "local", **topology.conf, **conf, **own}
        self._confs = _confs_of_positions(topology, self.conf)
        self.provider = provider_of(self.conf)
        if not self.provider.durable:
            raise StateError(f"nothing is stored in {self.provider.describe()}; name another topology.state.provider")
        check_provider(self.provider, COORDINATOR)
        self.provider.check()

    def close(self) -> None:
        """Close the provider's connections."""
        self.provider.close()

    def namespaces(self) -> list[str]:
        """Return the namespaces of tasks that hold state."""
        return [name for name in names_of(self.provider) if name != COORDINATOR and split_namespace(name)]

    def position(self) -> tuple[int | None, str]:
        """Return the last transaction and its phase: PREPARING, COMMITTING or COMMITTED."""
        coordinator = self._coordinator()
        try:
            return position_of(self.provider, coordinator) or (None, COMMITTED)
        finally:
            coordinator.close()

    def txids(self, name: str) -> tuple[int | None, int | None]:
        """Return the transactions of a namespace that were committed and prepared last."""
        return txids_of(self.provider, name)

    def size(self, name: str) -> int:
        """Return the number of keys in a namespace."""
        return len(self._content(name))

    def get(self, component: str, key: Any) -> Any:
        """Return the value of a key from the first task of the component that has it; None if no task has it."""
        for name in self._of(component):
            state = self._open(name)
            try:
                value = state.get(key)
            finally:
                state.close()
            if value is not None:
                return value
        return None

    def some_keys(self, component: str, most: int) -> list[Any]:
        """Return up to ``most`` keys of the component's tasks."""
        return list(islice(chain.from_iterable(map(self._content, self._of(component))), most))

    def claim(self) -> int:
        """Become the owner of the stored states, and return the epoch.

        Raises:
            InUseError: A topology, a job or another command owns them.
        """
        return epoch_of(self.provider)

    def settle(self) -> None:
        """Commit or roll back what was prepared, as the topology's start would, so that all tasks agree."""
        epoch = self.claim()
        coordinator = self._coordinator()
        coordinator.claim(epoch)
        txid, how = self.position()
        if txid is None:
            coordinator.close()
            return
        for name in self.namespaces():
            task = split_namespace(name)
            former = task is None or task[0] not in self.topology.components
            committed, prepared = self.txids(name)
            state = self._open(name)
            state.claim(epoch)
            try:
                if former:  # it was renamed or removed between two phases of a checkpoint
                    if prepared == txid != committed and how in (COMMITTING, COMMITTED):
                        state.commit(txid)
                    else:
                        state.rollback()
                elif how == COMMITTING:
                    state.commit(txid)
                elif how != COMMITTED or self.txids(name)[0] != self.txids(name)[1]:
                    state.rollback()
            finally:
                state.close()
        coordinator.put(STATE_KEY, [txid if how in (COMMITTING, COMMITTED) else txid - 1, COMMITTED])
        coordinator.commit()
        coordinator.close()

    def export(self) -> Iterator[dict[str, Any]]:
        """Yield a header, and then one object for each key with its value."""
        self.settle()
        names = self.namespaces()
        coordinator = self._content(COORDINATOR)
        yield {
            "multilang-state": FORMAT,
            "topology": self.topology.name,
            "txid": self.position()[0],
            "tasks": self._tasks(),
            **{name: coordinator.get(key) for name, key in _EXPORTED.items()},
        }
        for name in names:
            for key, value in self._content(name).items():
                yield {"namespace": name, "key": key, "value": value}

    def load(self, lines: Iterator[dict[str, Any]], replace: bool) -> int:
        """Store the lines that ``export`` yielded: all of them, or none if one is wrong.

        Args:
            lines: The header and the keys.
            replace: Whether to replace state that is stored already.

        Returns:
            The number of keys.

        Raises:
            StateError: A line is wrong, or there is state already and ``replace`` is False.
        """
        header = next(lines, {})
        tasks, txid = header.get("tasks"), header.get("txid")
        if (
            header.get("multilang-state") != FORMAT
            or not isinstance(tasks, dict)
            or not all(type(count) is int and count > 0 for count in tasks.values())
            or not (txid is None or type(txid) is int)
        ):
            raise StateError("this is not a file of multilang state export: its first line is not that of one")
        self.claim()
        there = self.namespaces()
        if there and not replace:
            raise StateError(
                f"{self.provider.describe()} holds state already ({', '.join(there[:5])}); give --replace to replace it "
                "by the file's"
            )
        contents: Replacements = {name: {} for name in there}
        count = 0
        for line in lines:
            try:
                name, key, value = line["namespace"], as_key(line["key"]), line["value"]
                hash(key)
                task = split_namespace(name)
            except (KeyError, TypeError, AttributeError) as problem:
                raise StateError(f"line {count + 2} is not a key with its value: {line!r}") from problem
            if value is None or task is None or task[1] >= tasks.get(task[0], task[1] + 1):
                raise StateError(f"line {count + 2} has no value, or is of no task: {line!r}")
            contents.setdefault(name, {})[key] = value
            count += 1
        contents[COORDINATOR] = {TASKS_KEY: tasks}
        contents[COORDINATOR].update({key: header[name] for name, key in _EXPORTED.items() if header.get(name)})
        if txid is not None:
            contents[COORDINATOR][STATE_KEY] = [txid, COMMITTED]
        self.provider.replace(contents)
        return count

    def reshard(self, component: str, tasks: int, values_of: Callable[[Any, Any], Sequence[Any]] | None = None) -> int:
        """Divide a component's keys among ``tasks`` tasks, as its fields grouping will.

        Args:
            component: The component's id.
            tasks: The new number of tasks.
            values_of: Called with a key and its value; returns the values that the grouping groups by. Needed when the
                keys are not exactly those values.

        Returns:
            The number of keys that moved to another task.

        Raises:
            StateError: The keys can't be divided, or they don't match the grouping.
        """
        spec = self.topology[component]
        if isinstance(spec.component, SourceExecutor):
            raise StateError(
                f"{component!r} is a source: its tasks have stored their positions, which only you can divide. Run state export, "
                "give each task its position in that file, and the first line the number of tasks; then run state import "
                "--replace"
            )
        widths = {len(input_.grouping.fields) for input_ in spec.inputs if input_.grouping.is_hashed}
        if values_of is None and not widths:
            raise StateError(
                f"{component!r} gets no tuples by fields grouping, so that no key has a task of its own; give "
                "--key module:function, a function of key and value that returns the grouping's values"
            )
        self.settle()
        names = self._of(component)
        before = self._tasks().get(component) or len(names)
        if not before:
            raise StateError(f"nothing of {component!r} is stored in {self.provider.describe()}")
        contents: Replacements = {namespace(component, index): {} for index in range(max(tasks, before))}
        moved = 0
        for name in names:
            found = split_namespace(name)
            index = found[1] if found else 0
            for key, value in self._content(name).items():
                values = values_of(key, value) if values_of else list(key) if isinstance(key, tuple) else [key]
                if not isinstance(values, list | tuple) or (widths and len(values) not in widths):
                    raise StateError(
                        f"key {key!r} of {component!r}: {values!r} is no list of as many values as its fields grouping has; give "
                        "--key module:function, a function of key and value that returns the list of these"
                    )
                values = list(values)
                if task_index(values, before) != index:
                    raise StateError(
                        f"key {key!r} of {component!r} is with task {index}, and its fields grouping sends {values!r} to task "
                        f"{task_index(values, before)} of {before}: keys of this state are not what the tuples are grouped by; "
                        "give --key module:function, a function of key and value that returns the grouping's values"
                    )
                target = task_index(values, tasks)
                contents[namespace(component, target)][key] = value
                moved += target != index
        coordinator = self._content(COORDINATOR)
        shape = coordinator.get(SHAPE_KEY)
        spout: Any = self.topology.components[SPOUT].component if SPOUT in self.topology.components else None
        if shape and spout is not None and component in spout.parts:
            shape["parts"][component] = spout.parts[component].to_json()  # by whose grouping they are divided now
        self._put_whole(contents, coordinator, {**coordinator.get(TASKS_KEY, {}), component: tasks}, shape)
        return moved

    def rename(self, old: str, new: str) -> int:
        """Give the stored state of a component that was renamed to the component of its new name.

        All of it is moved or, after a crash, nothing. Positions of PositionSpouts are moved one by one; after a crash,
        repeat it.

        Args:
            old: The component's former name, which the topology does not have any more.
            new: Its name in the topology.

        Returns:
            The number of tasks whose state or position was moved.

        Raises:
            StateError: Nothing of ``old`` is stored, or something of ``new`` is.
        """
        self.topology[new]
        if old in self.topology.components:
            raise StateError(f"{old!r} is a component of topology {self.topology.name!r}, so that it was not renamed")
        self._check_stored(old)
        count = sum(move_positions(conf, old, new) for conf in self._confs)
        names = self._of(old)
        if not names:
            return count
        held = Contents(self.provider)
        if held.held(new):
            raise StateError(f"{self.provider.describe()} has state of {new!r} already: remove it first, with state rm")
        self.settle()
        contents: Replacements = {name: {} for name in self._of(new)}
        for name in names:
            contents[name] = {}
            contents[namespace(new, (split_namespace(name) or ("", 0))[1])] = self._content(name)
        coordinator = self._content(COORDINATOR)
        tasks = dict(coordinator.get(TASKS_KEY) or {})
        if old in tasks:
            tasks[new] = tasks.pop(old)
        shape = coordinator.get(SHAPE_KEY)
        if shape and old in shape["parts"]:
            shape["parts"][new] = shape["parts"].pop(old)
        self._put_whole(contents, coordinator, tasks, shape)
        return count + len(names)

    def remove(self, component: str) -> int:
        """Remove the stored state of a component, and its positions if it is a PositionSpout.

        Args:
            component: The component's name. The topology need not have it any more.

        Returns:
            The number of tasks whose state or position was removed.

        Raises:
            StateError: Nothing of it is stored.
        """
        self._check_stored(component)
        count = sum(move_positions(conf, component, None) for conf in self._confs)
        names = self._of(component)
        if not names:
            return count
        self.settle()
        coordinator = self._content(COORDINATOR)
        tasks = {id: tasks for id, tasks in (coordinator.get(TASKS_KEY) or {}).items() if id != component}
        shape = coordinator.get(SHAPE_KEY)
        if shape:
            shape["parts"].pop(component, None)
        self._put_whole({name: {} for name in names}, coordinator, tasks, shape)
        return count + len(names)

    def accept(self) -> list[str]:
        """Store the topology's present shape, so that it continues with the stored states.

        If the alignment is another one, the positions of sources are removed. The positions of PositionSpouts stay, and
        count for the spouts as they are declared now.

        Returns:
            The differences that were accepted, in sentences.

        Raises:
            StateError: A difference needs another command.
        """
        declared = {
            id: Declared.of(each.component) for id, each in self.topology.components.items() if each.kind == "spout"
        }
        accepted = [text for conf in self._confs for text in accept_positions(conf, declared)]
        spout: Any = self.topology.components[SPOUT].component if SPOUT in self.topology.components else None
        if spout is None:
            if not accepted and not self._positions():
                raise StateError(f"topology {self.topology.name!r} has no stateful bolt, so that it stores no state")
            return accepted
        self.claim()
        now = Shape(spout.alignment, spout.parts, {id: self.topology[id].tasks for id in spout.stateful})
        coordinator = self._coordinator()
        try:
            before = Shape.stored(self.provider, coordinator)
        finally:
            coordinator.close()
        found = differences(self.provider, before, now, self.topology.components)
        positions = {id for id, part in before.parts.items() if part.kind == SOURCE}
        dropped = positions if before.alignment not in (None, now.alignment) else set()
        left = [each for each in found if not each.acceptable and each.component not in dropped]
        if left:
            raise StateError(left[0].text)
        self.settle()
        older = self._accept_older(spout)
        content = self._content(COORDINATOR)
        if older:
            content.pop(TOKEN_KEY, None)  # a copy of what was left behind is another state from here on
        contents: Replacements = {name: {} for id in dropped for name in self._of(id)}
        tasks = {id: count for id, count in before.tasks.items() if id not in dropped}
        self._put_whole(contents, content, {**tasks, **now.tasks}, now.to_json())
        return accepted + older + [each.text for each in found if each.acceptable]

    def _accept_older(self, spout: Any) -> list[str]:
        witness, coordinator = Witness(spout.elsewhere, self.conf), self._coordinator()
        try:
            return witness.accept(self.provider, coordinator)
        finally:
            witness.close()
            coordinator.close()

    def _check_stored(self, component: str) -> None:
        positions = self._positions()
        if not self._of(component) and not any(name.rpartition("/")[0] == component for name in positions):
            there = sorted({(split_namespace(name) or ("", 0))[0] for name in self.namespaces()})
            there += sorted({name.rpartition("/")[0] for name in positions})
            raise StateError(
                f"nothing of {component!r} is stored in {self.provider.describe()}; there is {', '.join(map(repr, there)) or 'nothing'}"
            )

    def _positions(self) -> set[str]:
        return {name for conf in self._confs for name in saved_positions(conf)}

    def _put_whole(
        self, contents: Replacements, coordinator: dict[Any, Any], tasks: Mapping[str, int], shape: Any
    ) -> None:
        """Replace these contents together with the checkpoint spout's state about them."""
        coordinator[TASKS_KEY] = dict(tasks)
        if shape:
            coordinator[SHAPE_KEY] = shape
        for key in (WHOLE_KEY, EVERY_KEY):
            coordinator.pop(key, None)  # the replaced contents belong to no transaction
        self.provider.replace({**contents, COORDINATOR: coordinator})

    def _tasks(self) -> dict[str, int]:
        coordinator = self._coordinator()
        try:
            return dict(tasks_of(self.provider, coordinator))
        finally:
            coordinator.close()

    def _of(self, component: str) -> list[str]:
        return [name for name in self.namespaces() if (split_namespace(name) or ("", 0))[0] == component]

    def _coordinator(self) -> KeyValueState[Any, Any]:
        return self._open(COORDINATOR)

    def _open(self, name: str) -> KeyValueState[Any, Any]:
        return state_of(self.provider, name, KeyValueState)  # type: ignore[no-any-return]

    def _content(self, name: str) -> dict[Any, Any]:
        state = self._open(name)
        try:
            return dict(items_of(self.provider, name, state))
        finally:
            state.close()


def _confs_of_positions(topology: Topology, conf: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a conf for each place of positions: that of the topology, and those that spouts have in their own conf."""
    found = {positions_url(conf): dict(conf)}
    for spec in topology.components.values():
        if spec.kind == "spout":
            own = {**conf, **{key: spec.conf[key] for key in (POSITIONS, STORE) if key in spec.conf}}
            found.setdefault(positions_url(own), own)
    return list(found.values())

"""The shape of the topology that wrote the stored states, which is compared when a topology claims them.

Stored states fit only a topology of the same shape: the key of a word is looked for in the task to which its grouping
sends it, and a position belongs to the source that saved it. A topology of another shape would read everything again, or
count beside the stored state, unnoticed. So the checkpoint spout stores the shape beside its own progress, and compares
it after the claim, before anything is processed. Each difference that would double or lose something is refused with the
old shape, the new one, and the fix. Others pass.
"""

from __future__ import annotations

from multilang.settings import ALIGNMENT, EXACT
from multilang.state.api import KeyValueState
from multilang.state.checked import items_of, names_of, state_of, tasks_of
from multilang.state.declared import IDENTITY, Declared, changed_text, others_identity
from multilang.state.names import SHAPE_KEY, SPOUT, TASKS_KEY, WHOLE_KEY, namespace, split_namespace
from multilang.state.settings import divided_otherwise
from multilang.state.stored import StoredState
from multilang.store.errors import UnusableStateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import Any

    from multilang.state.provider import StateProvider
    from multilang.topology.groupings import Grouping
    from multilang.topology.spec import ComponentSpec

SOURCE, BOLT = "source", "bolt"


class Part:
    """The part of a shape that one component has.

    Attributes:
        kind: SOURCE for a spout whose position is in the checkpoints, or else BOLT.
        declared: Its class and arguments.
        inputs: The division of each subscription's tuples among the tasks, by source and stream.
    """

    __slots__ = ("declared", "inputs", "kind")

    def __init__(self, kind: str, declared: Declared, inputs: Mapping[str, str]) -> None:
        self.kind = kind
        self.declared = declared
        self.inputs = dict(inputs)

    @property
    def name(self) -> str:
        """The name of the component's class."""
        return self.declared.name

    @classmethod
    def of(cls, spec: ComponentSpec) -> Part:
        """Return the part of a component as the user declared it."""
        inputs = {f"{each.component}/{each.stream}": _division(each.grouping) for each in spec.inputs}
        return cls(SOURCE if spec.kind == "spout" else BOLT, Declared.of(spec.component, spec.conf), inputs)

    def to_json(self) -> dict[str, Any]:
        """Return the part as it is stored."""
        return {"kind": self.kind, "inputs": self.inputs, **self.declared.to_json()}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Part:
        """Return the part that was stored."""
        return cls(found["kind"], Declared.from_json(found), found["inputs"])

    def is_like(self, other: Part) -> bool:
        """Return whether both are known to be declared alike, and to get the same."""
        alike = self.kind == other.kind and self.inputs.keys() == other.inputs.keys()
        return alike and self.declared.is_like(other.declared)

    def changed(self, now: Part) -> list[str]:
        """Return the names of the arguments that differ in ``now``, of the same class."""
        inputs = ["its inputs"] if self.inputs.keys() != now.inputs.keys() else []
        return [*self.declared.changed(now.declared), *inputs]


class Shape:
    """The shape of a topology, as far as stored states depend on it.

    Attributes:
        alignment: The alignment; None: unknown.
        parts: The components with state.
        tasks: The number of tasks of each of them.
    """

    def __init__(self, alignment: str | None, parts: Mapping[str, Part], tasks: Mapping[str, int]) -> None:
        self.alignment = alignment
        self.parts = dict(parts)
        self.tasks = dict(tasks)

    def to_json(self) -> dict[str, Any]:
        """Return the shape as it is stored, without the numbers of tasks, which have an entry of their own."""
        return {"alignment": self.alignment, "parts": {id: part.to_json() for id, part in self.parts.items()}}

    @classmethod
    def stored(cls, provider: StateProvider, coordinator: KeyValueState[str, Any]) -> Shape:
        """Return the shape that was stored last."""
        found = coordinator.get(SHAPE_KEY) or {"alignment": None, "parts": {}}
        parts = {id: Part.from_json(part) for id, part in found["parts"].items()}
        return cls(found["alignment"], parts, tasks_of(provider, coordinator))


class Contents:
    """The namespaces of a provider that hold anything; each is looked into once, when somebody asks."""

    def __init__(self, provider: StateProvider) -> None:
        self._provider = provider
        self._known: dict[str, bool] = {}
        self._names: dict[str, list[int]] | None = None

    @property
    def tasks(self) -> dict[str, list[int]]:
        """The indexes of the tasks that may hold something, by component."""
        if self._names is None:
            self._names = {}
            for name in names_of(self._provider):
                task = split_namespace(name)
                if task is not None and task[0] != SPOUT:
                    self._names.setdefault(task[0], []).append(task[1])
        return self._names

    def held(self, component: str) -> bool:
        """Return whether a task of the component holds a key."""
        return any(self.holds(namespace(component, index)) for index in self.tasks.get(component, ()))

    def holds(self, name: str) -> bool:
        """Return whether a namespace has a key."""
        if name not in self._known:
            state = state_of(self._provider, name)
            try:
                if isinstance(state, StoredState):
                    self._known[name] = next(state.store.scan(), None) is not None
                elif isinstance(state, KeyValueState):
                    self._known[name] = next(iter(items_of(self._provider, name, state)), None) is not None
                else:
                    self._known[name] = (
                        True  # a state without keys, which the provider counts among those that hold anything
                    )
            finally:
                state.close()
        return self._known[name]


class Difference:
    """A difference for which stored states are refused.

    Attributes:
        text: A sentence with the old shape, the new one, and the fix.
        component: The component that differs; empty: all of them.
        acceptable: Whether the user may accept it; otherwise something has to be moved or removed.
    """

    def __init__(self, text: str, component: str = "", acceptable: bool = False) -> None:
        self.text = text
        self.component = component
        self.acceptable = acceptable


def differences(provider: StateProvider, before: Shape, now: Shape, components: Collection[str]) -> list[Difference]:
    """Return the differences for which the stored states can't be continued as they are.

    Args:
        provider: The provider of the stored states.
        before: The shape that is stored with them.
        now: The shape of the topology that wants to continue.
        components: All components of that topology.
    """
    contents = Contents(provider)
    found = [
        *_alignment(before, now, contents),
        *_components(before, now, contents, components),
        *_tasks(before, now, contents),
        *_places(before, now, contents),
    ]
    for each in found:
        each.text = f"{each.text} ({provider.describe()})"
    return found


def check_shape(
    provider: StateProvider,
    coordinator: KeyValueState[str, Any],
    now: Shape,
    components: Collection[str],
    warn: Callable[[str], None] = lambda _: None,
) -> dict[str, int]:
    """Compare a topology with the stored shape, and put its own there, to be committed by the caller.

    Args:
        provider: The provider of the stored states, claimed.
        coordinator: The checkpoint spout's own state, claimed.
        now: The topology's shape.
        components: All its components.
        warn: Called with a text for each difference that may be meant, and may be a mistake.

    Returns:
        The number of tasks of each component that has or had state.

    Raises:
        UnusableStateError: What is stored would be doubled or lost.
    """
    before = Shape.stored(provider, coordinator)
    found = differences(provider, before, now, components)
    if found:
        raise UnusableStateError(found[0].text)
    for text in _changes(provider, before, now):
        warn(f"{text} ({provider.describe()})")
    return put_shape(coordinator, before, now)


def put_shape(coordinator: KeyValueState[str, Any], before: Shape, now: Shape) -> dict[str, int]:
    """Put the shape of the topology from now on, to be committed by the caller."""
    tasks = {**before.tasks, **now.tasks}
    whole = coordinator.get(WHOLE_KEY) or []
    left = [id for id in whole if before.tasks.get(id) == tasks.get(id)]  # others have no state in their new tasks yet
    for key, old, new in (
        (TASKS_KEY, coordinator.get(TASKS_KEY), tasks),
        (SHAPE_KEY, coordinator.get(SHAPE_KEY), now.to_json()),
        (WHOLE_KEY, whole, left),
    ):
        if old != new:
            coordinator.put(key, new)
    return tasks


def _alignment(before: Shape, now: Shape, contents: Contents) -> Iterable[Difference]:
    sources = {id for id, part in now.parts.items() if part.kind == SOURCE}
    earlier = before.alignment
    if earlier in (None, now.alignment):
        return
    if earlier == EXACT:
        positions = sorted(id for id, part in before.parts.items() if part.kind == SOURCE and contents.held(id))
        if positions:
            yield Difference(
                f"the stored state was written under {ALIGNMENT} {EXACT!r}, with the positions of {_listed(positions)}, and "
                f"the topology has {now.alignment!r} now, which stores no positions there: all would be read and counted "
                f"again. Build it with {EXACT!r}; if it is meant: multilang state accept TOPOLOGY, which forgets the positions",
                acceptable=True,
            )
        return
    bolts = sorted(id for id in contents.tasks if id not in sources and id in now.parts and contents.held(id))
    anew = sorted(id for id in sources if not contents.held(id))  # a Spark job may have saved positions
    if bolts and anew:
        yield Difference(
            f"the stored state of {_listed(bolts)} was written under {ALIGNMENT} {earlier!r}, without the positions of the "
            f"sources, and the topology has {now.alignment!r} now: {_listed(anew)} would begin at the beginning, and "
            f"all would be counted again. Build it with {earlier!r}; if it is meant: multilang state accept TOPOLOGY",
            acceptable=True,
        )


def _components(before: Shape, now: Shape, contents: Contents, components: Collection[str]) -> Iterable[Difference]:
    removed = sorted(id for id in contents.tasks if id not in now.parts and contents.held(id))
    renamed = [id for id in removed if id not in components]
    if renamed:
        one = renamed[0]
        yield Difference(
            f"there is stored state of {_listed(renamed)}, which the topology does not have: under another name it would begin "
            f"with nothing, and all would be read or counted again. If it was renamed: multilang state rename TOPOLOGY {one} "
            f"NEW; if it was removed: multilang state rm TOPOLOGY {one}; or else give it its name back",
            one,
        )
    for id in removed:
        if id in components:
            yield Difference(
                f"there is stored state of {id!r}, which stores none in this topology: it would begin with nothing. Declare it "
                f"as it was (a stateful bolt, or a source under {ALIGNMENT} {EXACT!r}); if that is meant: multilang state rm "
                f"TOPOLOGY {id}",
                id,
            )
    for id, part in now.parts.items():
        earlier = before.parts.get(id)
        if earlier is not None and earlier.kind != part.kind and contents.held(id):
            yield Difference(
                f"the stored state of {id!r} is that of a {earlier.kind}, and it is a {part.kind} now: give the new component "
                f"another name, or remove what is stored: multilang state rm TOPOLOGY {id}",
                id,
            )
        elif earlier is not None and earlier.name != part.name and contents.held(id):
            former = [each for each, its in before.parts.items() if each != id and its.name == part.name]
            moved = [each for each, its in now.parts.items() if each not in before.parts and its.name == earlier.name]
            if former or moved:
                whose = f"whose state is that of {former[0]!r}" if former else f"and {moved[0]!r} is {earlier.name}"
                yield Difference(
                    f"the stored state of {id!r} is that of {earlier.name}, and {id!r} is {part.name} now, {whose}: "
                    "give the components their names back; if it is meant: multilang state accept TOPOLOGY",
                    id,
                    acceptable=True,
                )
        elif earlier is not None and contents.held(id):
            yield from _exchanged(id, before, now)


def _exchanged(id: str, before: Shape, now: Shape) -> Iterable[Difference]:
    """Yield the difference of a component that was declared in another way, of the same class, if it is not just that."""
    earlier, part = before.parts[id], now.parts[id]
    changed = earlier.changed(part)
    if not changed:
        return
    former = [
        each
        for each, its in before.parts.items()
        if each != id and its.is_like(part) and not (each in now.parts and its.is_like(now.parts[each]))
    ]
    moved = [each for each, its in now.parts.items() if each not in before.parts and earlier.is_like(its)]
    what = ", ".join("what it reads" if each == IDENTITY else each for each in changed)
    if former or moved:
        whose = (
            f"{id!r} has what {former[0]!r} had when its state was stored"
            if former
            else f"{moved[0]!r}, which is new, has what {id!r} had when its state was stored, and {id!r} has something else now"
        )
        yield Difference(
            f"{whose} ({what}), so that one would continue with what is stored of the other: give the components their names back; if "
            "it is meant: multilang state accept TOPOLOGY",
            id,
            acceptable=True,
        )
        return
    text = others_identity(id, earlier.declared, part.declared)
    if text is not None:
        yield Difference(text, id, acceptable=True)


def _changes(provider: StateProvider, before: Shape, now: Shape) -> Iterable[str]:
    contents = Contents(provider)
    for id, part in now.parts.items():
        earlier = before.parts.get(id)
        if earlier is not None:
            text = changed_text(id, earlier.declared, part.declared, part.kind == SOURCE)
            if text is not None and contents.held(id):
                yield text


def _tasks(before: Shape, now: Shape, contents: Contents) -> Iterable[Difference]:
    for id, tasks in now.tasks.items():
        least = 1 + max((index for index in contents.tasks.get(id, ())), default=-1)
        earlier = before.tasks.get(id, max(tasks, least))
        if earlier == tasks or not contents.held(id):
            continue
        yield Difference(divided_otherwise(id, earlier, tasks, "as it is stored", now.parts[id].kind == SOURCE), id)


def _places(before: Shape, now: Shape, contents: Contents) -> Iterable[Difference]:
    for id, part in now.parts.items():
        earlier = before.parts.get(id)
        if earlier is None or now.tasks.get(id, 1) == 1 or before.tasks.get(id) != now.tasks.get(id):
            continue
        was, is_ = earlier.inputs, part.inputs
        changed = [(was[each], is_[each]) for each in is_ if each in was and was[each] != is_[each]]
        vanished = {was[each] for each in was if each not in is_}
        if vanished:  # an input was removed or renamed, or divides its tuples in another way
            changed += [(min(vanished), is_[each]) for each in is_ if each not in was and is_[each] not in vanished]
        if changed and contents.held(id):
            yield Difference(
                f"the state of {id!r} was divided among its {now.tasks[id]} tasks by {changed[0][0]} grouping, and it is "
                f"{changed[0][1]} grouping now, so that keys would be looked for in the wrong tasks: group as before; if it sends "
                f"each key to the same task as before: multilang state accept TOPOLOGY; if not: multilang state rm TOPOLOGY {id}",
                id,
                acceptable=True,
            )


def _division(grouping: Grouping) -> str:
    if grouping.is_arbitrary:
        return "shuffle"  # one kind is as good as another
    return str(grouping) if grouping.custom is None else type(grouping.custom).__name__


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))

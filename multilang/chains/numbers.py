"""The task ids of a chain's members, the same in each process of a run.

The first member has the ids of the chain's own tasks, since all that comes from outside comes to it. The others' ids follow
the greatest one of the run.
"""

from __future__ import annotations

from itertools import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def member_tasks(chains: Mapping[str, Sequence[str]], assignment: Mapping[int, str]) -> dict[str, list[int]]:
    """Return the task ids of each member of all chains, in the order of the chain's own tasks.

    Args:
        chains: The members of each chain by its id.
        assignment: Task id -> component, for the whole topology as it runs.
    """
    following = count(max(assignment, default=0) + 1)
    found = {}
    for chain in sorted(chains):
        own = sorted(task for task, component in assignment.items() if component == chain)
        for number, member in enumerate(chains[chain]):
            found[member] = own if not number else [next(following) for _ in own]
    return found


def declared_tasks(chains: Mapping[str, Sequence[str]], assignment: Mapping[int, str]) -> dict[int, str]:
    """Return task id -> component as declared, with the members of chains in place of the chains."""
    found = {task: component for task, component in assignment.items() if component not in chains}
    for member, tasks in member_tasks(chains, assignment).items():
        found.update(dict.fromkeys(tasks, member))
    return dict(sorted(found.items()))

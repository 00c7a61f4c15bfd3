"""Back-pressure between processes: the tasks that a bolt's full queue makes wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.topology.graph import behind, subscribers

if TYPE_CHECKING:
    from collections.abc import Collection

    from multilang.local.process.bolt import ProcessBoltTask
    from multilang.local.process.spout import ProcessSpoutTask
    from multilang.local.process.task import ProcessTask
    from multilang.runtime.plan import Plan


def connect_queues(
    plan: Plan,
    bolts: Collection[ProcessBoltTask],
    spouts: Collection[ProcessSpoutTask],
) -> None:
    """Connect each bolt to the tasks that its full queue makes wait.

    These are the tasks that write to it, except those that its own tuples may come back to, since each would wait for
    the other; and every spout upstream, which gets no next.
    """
    after = subscribers(plan.topology.components.values())
    get = {id: behind(after, id) for id in after}
    tasks: list[ProcessTask] = [*bolts, *spouts]
    for bolt in bolts:
        sources = {input_.component for input_ in bolt.plan.spec.inputs}
        for task in tasks:
            component = task.plan.component
            if component in sources and not (component in get[component] and component in get[bolt.plan.component]):
                bolt.upstream.append(task)
        bolt.spouts_upstream = [spout for spout in spouts if bolt.plan.component in get[spout.plan.component]]

"""What goes wrong with a topology on Spark, as opposed to inside a component."""

from __future__ import annotations

from multilang.topology.errors import TopologyError


class NotOnSparkError(TopologyError):
    """Spark can't express this topology, or not with these sources; said before any job starts, with the component's name."""


class SparkJobError(Exception):
    """The job can't go on; the text names the component and what to do."""


class ComponentStartError(SparkJobError):
    """A component's ``initialize`` failed in its Spark task, or its program could not be started."""

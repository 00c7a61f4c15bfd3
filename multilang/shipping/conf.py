"""The conf of a topology on a real Storm, with the keys that avoid Storm's faults with Python topologies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.protocol.codec import dumps
from multilang.shipping.errors import ShippingError
from multilang.state.settings import CONFIG
from multilang.topology.commands import BLOB_MAP, blob_map
from multilang.topology.conf import check_whole

if TYPE_CHECKING:
    from typing import Any

    from multilang.topology import Topology

KRYO = "topology.kryo.register"

# The classes that Storm's parser makes of lists, dicts, and floats of more than 18 characters. Kryo refuses classes
# that are not registered, and a worker that sends an object of such a class to another worker dies.
KRYO_CLASSES = (
    "org.apache.storm.shade.net.minidev.json.JSONArray",
    "org.apache.storm.shade.net.minidev.json.JSONObject",
    "java.math.BigDecimal",
)

# Seconds without a heartbeat after which Storm gives up a process; Storm's default is 30. Our process answers while
# user code runs, but not during a C call that holds Python's global lock, nor while it gets no time on a busy machine.
SUBPROCESS_TIMEOUT = 60


def default_conf(topology: Topology) -> dict[str, Any]:
    """Return the keys that are set for every topology.

    The topology's own conf overrides them; Kryo's registrations are merged.

    Args:
        topology: The topology.

    Raises:
        ShippingError: The topology's own registrations for Kryo have a wrong form.
    """
    return {
        KRYO: _registrations(topology),
        "topology.subprocess.timeout.secs": SUBPROCESS_TIMEOUT,
    }


def storm_conf(topology: Topology) -> dict[str, Any]:
    """Return the conf to submit: the defaults, overridden by the topology's own.

    A state provider's config is text, as in Storm. A component's map of blobs is merged into the topology's, because
    Storm reads no other.

    Args:
        topology: The topology.

    Raises:
        ShippingError: The topology's own registrations for Kryo have a wrong form.
        TopologyError: A value is a fraction where Storm takes whole numbers.
    """
    check_whole(topology.conf, f"topology {topology.name!r}")
    defaults = default_conf(topology)
    conf = {**defaults, **topology.conf, KRYO: defaults[KRYO]}
    mapped = blob_map(topology)
    if mapped:
        conf[BLOB_MAP] = mapped
    config = conf.get(CONFIG)
    if config is not None and not isinstance(config, str):
        conf[CONFIG] = dumps(config)
    return conf


def _registrations(topology: Topology) -> list[Any]:
    """Return the topology's own list (class names, or ``{class: serializer}``), and our classes that it lacks."""
    own = topology.conf.get(KRYO)
    if own is None:
        return list(KRYO_CLASSES)
    if isinstance(own, dict):
        own = [{name: serializer} for name, serializer in own.items()]
    if not isinstance(own, list) or not all(isinstance(item, str | dict) for item in own):
        raise ShippingError(
            f"{KRYO} of topology {topology.name!r} is {own!r}; write a list of class names, or of {{class: serializer}}"
        )
    named = {name for item in own for name in ([item] if isinstance(item, str) else item)}
    return [*own, *(name for name in KRYO_CLASSES if name not in named)]

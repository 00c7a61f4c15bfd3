"""The conf of a topology on a real Storm: the keys without which a Python topology meets Storm's faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.protocol.codec import dumps
from multilang.shipping.errors import ShippingError
from multilang.state.settings import CONFIG
from multilang.topology.commands import BLOB_MAP, blob_map

if TYPE_CHECKING:
    from typing import Any

    from multilang.topology import Topology

KRYO = "topology.kryo.register"

# What Storm's parser makes of lists, of dicts and of floats of more than 18 characters. Kryo refuses classes that are
# not registered, and the worker that emits one of these to another worker dies of it.
KRYO_CLASSES = (
    "org.apache.storm.shade.net.minidev.json.JSONArray",
    "org.apache.storm.shade.net.minidev.json.JSONObject",
    "java.math.BigDecimal",
)

# Seconds without a sign of life after which Storm gives a process up, its default being 30. Ours answers while user
# code runs, but not during a call into C that keeps Python's lock, nor while the machine has no time for it.
SUBPROCESS_TIMEOUT = 60


def default_conf(topology: Topology) -> dict[str, Any]:
    """The keys that are set for every topology. Its own conf wins, except that Kryo's registrations are put together."""
    return {
        KRYO: _registrations(topology),
        # Storm 2.6 to 2.8 dies of a plain task id in a direct emit; the other form is right on every version.
        "multilang.direct.task.plain": False,
        "topology.subprocess.timeout.secs": SUBPROCESS_TIMEOUT,
    }


def storm_conf(topology: Topology) -> dict[str, Any]:
    """The whole conf to submit: the topology's own over the defaults. A state provider's config is text, as Storm has it.

    A component's map of blobs is put into the topology's: Storm reads no other.
    """
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
    """The topology's own list (class names, or ``{class: serializer}``), and those of ours that it does not name."""
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

"""The confs that a Nimbus gives, its own and those of topologies, as JSON objects, or an error that says what came instead."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from multilang.shipping.errors import unreachable

if TYPE_CHECKING:
    from typing import Any

    from multilang.shipping.nimbus import Nimbus


def nimbus_conf(nimbus: Nimbus) -> dict[str, Any]:
    """Return the conf of Nimbus, which has the places of logs, the port of logviewers, and what topologies don't say."""
    return _object(nimbus, nimbus.call("getNimbusConf"), "its conf")


def conf_of(nimbus: Nimbus, id: str) -> dict[str, Any]:
    """Return the conf of a topology. ``id``: its id."""
    return _object(nimbus, nimbus.call("getTopologyConf", id), f"the conf of {id!r}")


def _object(nimbus: Nimbus, text: str, what: str) -> dict[str, Any]:
    try:
        conf = json.loads(text)
    except (ValueError, RecursionError):
        conf = None
    if not isinstance(conf, dict):
        raise unreachable(f"{nimbus.address} is no Nimbus: what it gives as {what} is no JSON object")
    return conf

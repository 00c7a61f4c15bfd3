"""The names of Storm's own library for Python, on this library's engine: after ``import storm``, ``emit`` and ``BasicBolt``."""

from __future__ import annotations

from multilang.compat.storm import components
from multilang.compat.storm.calls import (
    ack,
    emit,
    emitBolt,
    emitDirect,
    emitSpout,
    fail,
    json_decode,
    json_encode,
    log,
    logDebug,
    logError,
    logInfo,
    logTrace,
    logWarn,
    reportError,
    rpcMetrics,
    sync,
)
from multilang.compat.storm.components import BasicBolt, Bolt, Spout, Tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "BasicBolt",
    "Bolt",
    "Spout",
    "Tuple",
    "ack",
    "emit",
    "emitBolt",
    "emitDirect",
    "emitSpout",
    "fail",
    "json_decode",
    "json_encode",
    "log",
    "logDebug",
    "logError",
    "logInfo",
    "logTrace",
    "logWarn",
    "reportError",
    "rpcMetrics",
    "sync",
]


def _run_alone(component: Any) -> None:
    from multilang.compat.storm.running import adapted

    adapted(component).run()


components.run_alone = _run_alone

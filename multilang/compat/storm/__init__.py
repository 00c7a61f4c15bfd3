"""The names of Storm's own library for Python, on this library's engine: after ``import storm``, ``emit`` and ``BasicBolt``."""

from __future__ import annotations

from multilang.compat.storm.calls import (
    ack,
    emit,
    emitBolt,
    emitDirect,
    emitSpout,
    fail,
    log,
    logDebug,
    logError,
    logInfo,
    logTrace,
    logWarn,
    reportError,
    rpcMetrics,
)
from multilang.compat.storm.components import BasicBolt, Bolt, Spout, Tuple

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
    "log",
    "logDebug",
    "logError",
    "logInfo",
    "logTrace",
    "logWarn",
    "reportError",
    "rpcMetrics",
]

"""The names of Storm's own library for Python, on this library's engine: after ``import storm``, ``emit`` and ``BasicBolt``."""

from __future__ import annotations

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

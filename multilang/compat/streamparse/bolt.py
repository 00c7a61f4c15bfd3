"""streamparse's classes under the module's name that older programs import."""

from __future__ import annotations

from multilang.compat.streamparse.storm.bolt import BatchingBolt, Bolt, JavaBolt, ShellBolt, TicklessBatchingBolt

__all__ = ["BatchingBolt", "Bolt", "JavaBolt", "ShellBolt", "TicklessBatchingBolt"]

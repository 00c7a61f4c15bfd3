"""streamparse's classes under the module's name that older programs import."""

from __future__ import annotations

from multilang.compat.streamparse.storm.bolt import BatchingBolt, Bolt, JavaBolt, ShellBolt, TicklessBatchingBolt

BasicBolt = Bolt
"""The name of Bolt before streamparse 3."""

__all__ = ["BasicBolt", "BatchingBolt", "Bolt", "JavaBolt", "ShellBolt", "TicklessBatchingBolt"]

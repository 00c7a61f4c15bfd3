"""streamparse's classes under the module's name that older programs import."""

from __future__ import annotations

from multilang.compat.streamparse.storm.spout import JavaSpout, ReliableSpout, ShellSpout, Spout

__all__ = ["JavaSpout", "ReliableSpout", "ShellSpout", "Spout"]

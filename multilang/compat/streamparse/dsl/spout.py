"""The declarations of spouts."""

from __future__ import annotations

from multilang.compat.streamparse.dsl.component import JavaComponentSpec, ShellComponentSpec


class ShellSpoutSpec(ShellComponentSpec):
    """A spout that a command starts; see ComponentSpec."""


class JavaSpoutSpec(JavaComponentSpec):
    """A spout in Java; see ComponentSpec."""

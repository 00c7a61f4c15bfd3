"""The declarations of bolts."""

from __future__ import annotations

from multilang.compat.streamparse.dsl.component import JavaComponentSpec, ShellComponentSpec


class ShellBoltSpec(ShellComponentSpec):
    """A bolt that a command starts; see ComponentSpec."""


class JavaBoltSpec(JavaComponentSpec):
    """A bolt in Java; see ComponentSpec."""

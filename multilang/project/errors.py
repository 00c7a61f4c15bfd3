"""Errors of projects."""

from __future__ import annotations

from multilang.component.errors import ConfigError


class ProjectError(ConfigError):
    """A project's file says something that can't be, or a project can't be made."""

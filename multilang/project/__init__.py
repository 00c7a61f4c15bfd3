"""Projects: a folder with ``multilang.toml``, which names what is run where and with which settings."""

from __future__ import annotations

from multilang.project.file import FILE, ProjectFile, find_project
from multilang.project.settings import Given, Settings

__all__ = ["FILE", "Given", "ProjectFile", "Settings", "find_project"]

"""Petrel's helper for its files of settings."""

from __future__ import annotations

from multilang.compat.yaml_file import read_yaml

__all__ = ["read_yaml"]

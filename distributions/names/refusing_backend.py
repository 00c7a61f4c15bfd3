"""A build that stops where a library whose name it takes is installed; everything else is setuptools'."""

import sysconfig
from importlib.metadata import distributions

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 - the other hooks

ORIGINALS = ("streamparse", "pystorm", "storm")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Build the wheel that an installation from the source unpacks."""
    for folder in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for name in ORIGINALS:
            for found in distributions(name=name, path=[folder]):
                raise SystemExit(
                    f"{found.name} {found.version} is installed in {folder}, and storm-multilang-names has the same name; "
                    f"uninstall it first: pip uninstall {name}"
                )
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)

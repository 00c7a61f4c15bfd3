"""Projects of streamparse: a folder with ``config.json``, ``topologies/``, ``src/`` and ``virtualenvs/``."""

from __future__ import annotations

import json
import os

from multilang.component.errors import ConfigError
from multilang.helpers import private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONFIG = "config.json"
ENVIRONMENT = "MULTILANG_ENVIRONMENT"
"""The environment variable with the name of the environment in config.json to use."""

OTHER_CONFIG = "MULTILANG_PROJECT_CONFIG"
"""The environment variable with the file that replaces config.json in the current folder, as in `sparse --config`."""

NIMBUS = "STREAMPARSE_NIMBUS"
_LOG = {"max_bytes": int, "backup_count": int, "level": str}
NEEDLESS = (
    "install_virtualenv",
    "use_virtualenv",
    "virtualenv_flags",
    "virtualenv_name",
    "virtualenv_path",
    "virtualenv_root",
    "use_ssh_for_nimbus",
    "ssh_password",
    "ssh_port",
)
"""Settings of an environment, or of its options, without an effect here: there is no SSH, and there are no virtualenvs."""


class Project:
    """A project of streamparse.

    Args:
        root: Its folder.
        config: The content of its config.json; empty if it has none.
    """

    def __init__(self, root: str, config: dict[str, Any]) -> None:
        self.root = root
        self.config = config

    @property
    def topologies(self) -> str:
        """The folder of its topologies."""
        return os.path.normpath(os.path.join(self.root, self.config.get("topology_specs") or "topologies"))

    @property
    def source(self) -> str:
        """The folder of its components, in which their processes start."""
        return os.path.join(self.root, "src")

    @property
    def virtualenvs(self) -> str:
        """The folder of the requirements of its topologies."""
        return os.path.normpath(os.path.join(self.root, self.config.get("virtualenv_specs") or "virtualenvs"))

    def names(self) -> list[str]:
        """Return the names of its topologies in Python."""
        folder = self.topologies
        there = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        return [each[:-3] for each in there if each.endswith(".py") and each != "__init__.py"]

    def file(self, name: str | None = None) -> str:
        """Return the file of a topology.

        Args:
            name: The topology's name; None: there is only one.

        Raises:
            ConfigError: There is no such topology, or there are several.
        """
        folder = self.topologies
        there = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        found = self.names()
        if name is None and len(found) == 1:
            name = found[0]
        if name in found:
            return os.path.join(folder, f"{name}.py")
        clojure = [each for each in there if each.endswith(".clj")]
        if clojure and (name is None or f"{name}.clj" in clojure):
            raise ConfigError(
                f"{os.path.join(folder, clojure[0])} declares its topology in Clojure, as streamparse did before version 3; "
                f"declare it in {os.path.join(folder, clojure[0][:-4])}.py, as a class of streamparse's DSL: multilang migrate "
                f"{self.root} --fix writes it, and shows the other things to do"
            )
        if not found:
            raise ConfigError(f"{folder} has no topology, which is a file that ends in .py")
        which = "has several topologies" if name is None else f"has no topology {name!r}"
        raise ConfigError(f"{folder} {which}; name one of {', '.join(found)}")

    def environment(self, name: str | None = None) -> tuple[str | None, dict[str, Any]]:
        """Return the name and the entries of an environment.

        Args:
            name: The environment; None: that of ``MULTILANG_ENVIRONMENT``, or the only one.

        Raises:
            ConfigError: config.json has no such environment.
        """
        environments = self.config.get("envs") or {}
        name = name or os.environ.get(ENVIRONMENT) or None
        if name is None:
            if len(environments) != 1:
                return None, {}
            (name,) = environments
        if environments and name not in environments:
            raise ConfigError(
                f"{os.path.join(self.root, CONFIG)} has no environment {name!r}; it has {', '.join(map(repr, environments))}"
            )
        return name, environments.get(name) or {}

    def conf(self, environment: dict[str, Any]) -> dict[str, Any]:
        """Return the conf that an environment gives to topologies, whose own conf overrides it.

        Raises:
            ConfigError: It asks for a serializer that is not supported.
        """
        serializer = environment.get("serializer") or self.config.get("serializer")
        if serializer not in (None, "json"):
            raise ConfigError(
                f'{os.path.join(self.root, CONFIG)} has "serializer": {json.dumps(serializer)}, which needs a Java class on the '
                'workers that speaks it, and JSON is faster here; write "serializer": "json"'
            )
        conf = dict(environment.get("options") or {})
        log = environment.get("log") or {}
        for key in ("path", "file"):
            value = log.get(key) or environment.get(f"log_{key}")
            if value:
                conf[f"pystorm.log.{key}"] = value
        for key, kind in _LOG.items():
            if isinstance(log.get(key), kind):
                conf[f"pystorm.log.{key}"] = log[key].lower() if kind is str else log[key]
        workers = environment.get("workers")
        if isinstance(workers, list) and workers:
            for key in ("topology.workers", "topology.acker.executors"):
                conf.setdefault(key, len(workers))
        return conf

    def nimbus(self, environment: dict[str, Any]) -> str | None:
        """Return the address of an environment's Nimbus, which ``STREAMPARSE_NIMBUS`` overrides; None if it has none."""
        return os.environ.get(NIMBUS) or environment.get("nimbus") or None

    def requirements(self, name: str) -> str | None:
        """Return the file with the requirements of a topology, or the only one that there is; None if there is none."""
        folder = self.virtualenvs
        there = [each for each in os.listdir(folder) if each.endswith(".txt")] if os.path.isdir(folder) else []
        own = [f"{name}.txt", f"{name.removesuffix('_topology')}.txt"]  # multilang migrate has added it
        found = [each for each in own if each in there] or (there if len(there) == 1 else [])
        return os.path.join(folder, found[0]) if found else None

    def needless(self, environment: dict[str, Any]) -> list[str]:
        """Return the settings of an environment without an effect here: there is no SSH, and there are no virtualenvs."""
        options = environment.get("options") or {}
        return [key for key in NEEDLESS if environment.get(key) or options.get(key)]


def check_owner(path: str, must_exist: bool = False) -> None:
    """Refuse a file of a project that another account put into a folder in which every account may make files, such as /tmp.

    A project's files are looked for above a topology, and run code: by its hooks, its conf and its requirements.

    Args:
        path: The file or folder.
        must_exist: Whether it is about to be used: another account's file can be missing at the check, and there at the use.

    Raises:
        ConfigError: It, or a folder above it, belongs to another account than this one, the folder's and root's; or it is
            missing, and must not be.
    """
    try:
        private.check_owners(path, must_exist)
    except FileNotFoundError:
        raise ConfigError(f"{path} was there a moment ago, and is missing now") from None
    except PermissionError as error:
        raise ConfigError(
            f"{error}: it is not used, since it would run code as you; move your files into a folder of your own"
        ) from None


def project_at(folder: str) -> Project | None:
    """Return the project in a folder; None if there is none.

    Raises:
        ConfigError: Its config.json can't be read, or is another account's.
    """
    root = os.path.abspath(folder)
    path = os.path.join(root, CONFIG)
    if os.environ.get(OTHER_CONFIG) and root == os.getcwd():
        path = os.path.abspath(os.environ[OTHER_CONFIG])
    config: Any = None
    if os.path.isfile(path):
        refused: ConfigError | None = None
        try:
            check_owner(path, must_exist=True)  # before it is read: afterwards another one could be there
        except ConfigError as error:
            refused = error
        try:
            with open(path, encoding="utf-8-sig") as file:
                config = json.load(file)
        except (OSError, ValueError, RecursionError) as error:
            if not os.path.isdir(os.path.join(root, "topologies")):
                return None  # of something else
            raise ConfigError(f"{path} can't be read: {error}") from None
        if isinstance(config, dict) and ("topology_specs" in config or "envs" in config):
            if refused is not None:
                raise refused
            return _own(Project(root, config))
    if all(os.path.isdir(os.path.join(root, each)) for each in ("topologies", "src")):
        return _own(Project(root, {}))
    return None


def _own(project: Project) -> Project:
    for each in (os.path.join(project.root, CONFIG), project.topologies, project.source):
        check_owner(each)
    return project


def project_of(file: str) -> Project | None:
    """Return the project that a topology's file is in; None if it is in none.

    Raises:
        ConfigError: The project's config.json can't be read.
    """
    own = os.path.dirname(os.path.abspath(file))
    folder = os.path.dirname(own)
    while True:
        found = project_at(folder)
        if found is not None:
            return found if found.topologies == own else None
        above = os.path.dirname(folder)
        if above == folder or folder.count(os.sep) < own.count(os.sep) - 2:
            return None
        folder = above

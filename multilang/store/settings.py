"""The store that a conf names, and the names of a topology's data there."""

from __future__ import annotations

import os

from multilang.helpers import private
from multilang.settings import OWN_STORE, PARENT, STORE, STORED_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def store_url(conf: Mapping[str, Any], *settings: str) -> tuple[Any, str] | None:
    """Return the URL of the store for a topology, and the conf key that has it.

    Args:
        conf: The conf.
        settings: The keys that may name it before ``multilang.store`` does.

    Returns:
        Without any of these keys, the topology's own SQLite file where it runs on this machine or on Spark; None on a cluster.
        A simulated run has a store of its own instead.
    """
    for setting in (*settings, STORE):
        if conf.get(setting) is not None:
            found = conf[setting]  # "memory:" ends with its task, and so is a run's own anyway
            own = None if found == "memory:" else own_store(conf, setting)
            return own or found, setting
    own = own_store(conf)
    if own is not None:
        return own, STORE
    if conf.get(PARENT) in ("local", "spark"):
        return f"sqlite://{state_file(stored_name(conf))}", settings[0] if settings else STORE
    return None


def own_store(conf: Mapping[str, Any], *settings: str) -> str | None:
    """Return the URL of a simulated run's own store, which takes the place of what the topology names.

    Args:
        conf: The conf.
        settings: The keys that name the place; if the run was given one of them, it is used.

    Returns:
        None for any other run, and if the place is to be used.
    """
    own = conf.get(OWN_STORE)
    return None if own is None or not set(settings).isdisjoint(own["given"]) else own["url"]


def place_of(*names: str) -> str:
    """Return the name of a place in a store: ``names`` with a slash between two, and none inside of one."""
    return "/".join(name.replace("%", "%25").replace("/", "%2F") for name in names)


def name_in(part: str) -> str:
    """Return the name of which ``place_of`` made a part of a place's name."""
    return part.replace("%2F", "/").replace("%25", "%")


def url_of(place: Any) -> Any:
    """Return the URL of a store that is named by its URL, or by the path of its SQLite file, which has no colon before its first slash."""
    return f"sqlite://{place}" if isinstance(place, str) and ":" not in place.partition("/")[0] else place


def stored_name(conf: Mapping[str, Any]) -> str:
    """Return the name under which everything of a topology is stored: its own, or that of the one that it takes over."""
    return str(conf.get(STORED_NAME) or conf.get("topology.name") or "topology")


def owner_of(conf: Mapping[str, Any]) -> tuple[str, str]:
    """Return the run that claims this topology's data (``storm.id``), and the name under which they are stored."""
    topology = stored_name(conf)
    return str(conf.get("storm.id") or f"{topology} {os.getpid()}"), topology


def may_return(conf: Mapping[str, Any]) -> bool:
    """Return whether a fenced run may claim again: yes on Storm, where nobody else could end it."""
    return conf.get(PARENT) != "local"


def is_on_cluster(conf: Mapping[str, Any]) -> bool:
    """Return whether this is the conf of a task on a cluster of Storm's."""
    return conf.get("storm.id") is not None and conf.get(PARENT) is None


def state_home() -> str:
    """Return the folder of the embedded cluster's state files."""
    own = os.environ.get("MULTILANG_STATE_HOME")
    if own:
        return os.path.abspath(own)
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "storm-multilang")


_LONGEST = 255 - len(".sqlite-journal")  # bytes of a file's name, with those of the files beside it


def state_file(name: str, *folders: str) -> str:
    """Return the path of the SQLite file for ``name`` in that folder; different names have different files.

    Args:
        name: The topology's name, for example.
        folders: Folders between the state folder and the file.
    """
    plain = "".join(letter if letter.isalnum() or letter in "-_" else f"%{ord(letter):x}." for letter in name)
    return os.path.join(state_home(), *folders, f"{private.short_name(plain, _LONGEST)}.sqlite")

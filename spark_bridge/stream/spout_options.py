"""The options of ``storm_spout``, which name the spout and how it runs."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

from multilang.component.wrapper import innermost
from multilang.loading.topologies import load_object, split_target
from multilang.protocol.codec import loads
from multilang.topology import ShellSpout, TopologyBuilder, load_topology
from multilang.topology.errors import TopologyError, did_you_mean
from multilang.topology.identity import check_found
from multilang.topology.shell import ShellComponent
from spark_bridge.job.plan import is_transactional, without_checkpoints

if TYPE_CHECKING:
    from collections.abc import Mapping

    from multilang.topology.model import Topology

ROWS = 10_000
_OPTIONS = (
    "log",
    "spout",
    "command",
    "fields",
    "topology",
    "stream",
    "parallelism",
    "conf",
    "batch_size",
    "submission",
)


class SpoutOptions:
    """The options of a ``storm_spout``.

    ``log`` is the place of tuples that Spark has not committed yet: the path of an SQLite file on the driver's machine, or the
    URL of a store. It belongs to one query.

    The spout is given in one of these forms:

    * ``spout``: a class, or an instance, by its place: ``"shop.spouts.Orders"``, ``"spouts.py:orders"``;
    * ``command``, of a spout in another language, ``"node orders.js"``, with its ``fields``, ``"customer, amount"``,
      and, if the program asks for its id, that id as ``spout``;
    * ``topology``, ``"shop/topology.py"``, and ``spout``, the spout's id in it.

    Further options: ``parallelism``, of the first two forms, 1 by default; ``stream``, the stream to read; ``conf``, a
    JSON object; ``submission``, what ``topology.identity.submission`` returned for the topology; ``batch_size``, about how many rows a batch has at most. A batch has no more rows than are emitted within a
    second, either.

    Raises:
        TopologyError: An option is unknown, missing or wrong.
        ConfigError: The topology can't be declared.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        given = {name.lower(): value for name, value in options.items()}
        unknown = [name for name in given if name not in _OPTIONS]
        if unknown:
            raise TopologyError(f"storm_spout has no option {unknown[0]!r}; {did_you_mean(unknown[0], _OPTIONS)}")
        if "log" not in given:
            raise TopologyError(
                "storm_spout needs the option log: a file on the driver's machine, of this query alone, that keeps what the spout "
                "emitted until Spark has committed it"
            )
        self.log = given["log"]
        self.batch_size = _count(given, "batch_size", ROWS)
        topology = _topology(given)
        self.topology = topology.with_conf(_conf(given))
        self.id = given["spout"] if "topology" in given else next(iter(topology.spouts))
        spec = self.topology.components.get(self.id)
        if spec is None or spec.kind != "spout":
            raise TopologyError(
                f"{self.id!r} is no spout of {topology.name!r}; {did_you_mean(self.id, topology.spouts)}"
            )
        if not spec.streams:
            named = "the option fields" if "command" in given else f"output_fields of {type(spec.component).__name__}"
            raise TopologyError(f"spout {self.id!r} has no stream to read: name the fields of its tuples, {named}")
        self.stream = given.get("stream") or (next(iter(spec.streams)) if len(spec.streams) == 1 else "default")
        if self.stream not in spec.streams:
            raise TopologyError(
                f"spout {self.id!r} has no stream {self.stream!r}; give the option stream: {did_you_mean(self.stream, spec.streams)}"
            )
        self.fields = list(spec.streams[self.stream].fields)

    def described(self) -> dict[str, Any]:
        """Return what identifies the spout of a log. Its code, its conf, and the place of its program may change."""
        component = self.topology.components[self.id].component
        kind = None if isinstance(component, ShellComponent) else type(innermost(component)).__name__
        return {"id": self.id, "class": kind, "stream": self.stream, "fields": self.fields}


def _topology(given: Mapping[str, str]) -> Topology:
    """Return the topology that has the spout, or a topology of the spout alone."""
    command, name, whole = (given.get(option) for option in ("command", "spout", "topology"))
    if (command is None and name is None) or (whole is not None and (command is not None or name is None)):
        raise TopologyError(
            "storm_spout needs a spout, by one of: spout='shop.spouts.Orders'; command='node orders.js' and "
            "fields='customer, amount'; topology='shop/topology.py' and spout, the spout's id there"
        )
    fixed = {"parallelism", "fields"} if whole is not None else {"fields"} if command is None else set()
    for option in fixed & given.keys():
        raise TopologyError(
            f"storm_spout: {option} is fixed by the {'topology' if whole else 'spout'} itself; leave out {option}"
        )
    if whole is not None:
        loaded = (
            _submitted(whole, str(name), loads(given["submission"])) if "submission" in given else load_topology(whole)
        )
        return loaded if is_transactional(loaded) else without_checkpoints(loaded)
    component: Any
    if command is not None:
        fields = [field.strip() for field in given.get("fields", "").split(",")]
        words = shlex.split(command)
        id = name or (words or [""])[0].rpartition("/")[2]
        component = ShellSpout(words, output_fields=fields if any(fields) else None)
    else:
        place = str(name) if ":" in str(name) else ":".join(str(name).rpartition(".")[::2])
        id, component = split_target(place)[1], load_object(place)
    builder = TopologyBuilder()
    builder.folder = os.getcwd()  # relative paths in options are relative to the caller's folder
    builder.set_spout(id, component, parallelism=_count(given, "parallelism", 1))
    return builder.build(id)


def _submitted(place: str, spout: str, submission: Mapping[str, Any]) -> Topology:
    """Load the topology that was submitted. Raises ConfigError for another one."""
    own = sys.argv[:]  # Spark's processes read theirs again and again
    try:
        sys.argv[:] = submission["arguments"]
        loaded = load_topology(place)
    finally:
        sys.argv[:] = own
    if spout in loaded.declared.components:
        check_found(submission, loaded.declared[spout], place)
    return loaded


def _count(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name, str(default))
    if not text.isdecimal() or not int(text):
        raise TopologyError(f"storm_spout: {name} is {text!r}; use a whole number from 1")
    return int(text)


def _conf(given: Mapping[str, str]) -> dict[str, Any]:
    text = given.get("conf", "{}")
    try:
        found = loads(text)
    except ValueError as problem:
        raise TopologyError(f"storm_spout: conf is not JSON: {problem}") from None
    if not isinstance(found, dict):
        raise TopologyError(f'storm_spout: conf is a JSON object, such as {{"orders.folder": "/srv"}}, not {text}')
    return found

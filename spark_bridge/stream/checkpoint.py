"""The topology's description in a query's checkpoint folder, so that no other topology continues from there."""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, cast

from py4j.protocol import Py4JJavaError

from multilang.component.wrapper import innermost
from multilang.protocol.codec import dumps, loads
from multilang.state.bolt import Stateful
from multilang.topology.errors import TopologyError
from multilang.topology.shell import ShellComponent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

    from multilang.topology.model import ComponentSpec, Topology

FILE = "multilang-topology.json"
_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
# Spark's class, under its names from 4.1 on and before
_MANAGERS = tuple(
    f"org.apache.spark.sql.execution.streaming.{place}FileSystemBasedCheckpointFileManager"
    for place in ("checkpointing.", "")
)


def check_same(spark: SparkSession, checkpoint: str, topology: Topology, sources: Mapping[str, Iterable[str]]) -> None:
    """Store the topology's description, or compare it with the stored one.

    Raises TopologyError with the first difference.

    ``topology``: as it was declared. ``sources``: the columns of each. Code, conf, and the number of tasks of bolts
    without state may change.
    """
    now = _described(topology, sources)
    place = _Place(spark, checkpoint)
    text = place.read(FILE)
    if place.read("metadata") is None:  # Spark has begun nothing here
        place.write(FILE, dumps(now))
        return
    if text is None:
        raise TopologyError(
            f"the checkpoint {checkpoint} is that of another query, not of a topology: name a new folder"
        )
    found = next(_differences(loads(text), now), None)
    if found is not None:
        raise TopologyError(
            f"the checkpoint {checkpoint} is that of another topology: {found}. Its offsets and what came of them belong "
            "together: continue with the topology as it was, or name a new folder for this one"
        )


def local_folder(spark: SparkSession, checkpoint: str) -> str | None:
    """Return a checkpoint's folder if it is on this machine, whatever its name or URL contains; else None."""
    return _Place(spark, checkpoint).local


@contextmanager
def written_directly(spark: SparkSession, checkpoint: str) -> Iterator[None]:
    """Let a query that starts in this context write a checkpoint on this machine with Hadoop's FileSystem.

    Spark prefers FileContext, which starts a process for each look at a local file, so that batches take 0.1 s longer.
    Both check whether a file exists, write another one, and rename that.
    """
    manager = (
        _direct_manager(spark)
        if spark.conf.get(_MANAGER, None) is None and local_folder(spark, checkpoint) is not None
        else None
    )
    if manager is None:
        yield
        return
    spark.conf.set(_MANAGER, manager)
    try:
        yield
    finally:
        spark.conf.unset(_MANAGER)


def _direct_manager(spark: SparkSession) -> str | None:
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for name in _MANAGERS:
        try:
            loader.loadClass(name)
        except Py4JJavaError:
            continue
        return name
    return None


def _described(topology: Topology, sources: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    return {
        "topology": topology.name,
        "sources": {name: list(columns) for name, columns in sources.items()},
        "components": {id: _of(spec) for id, spec in topology.components.items()},
    }


def _of(spec: ComponentSpec) -> dict[str, Any]:
    component = spec.component
    found: dict[str, Any] = {
        "kind": spec.kind,
        "streams": {name: list(stream.fields) for name, stream in spec.streams.items()},
        "inputs": sorted([each.component, each.stream, dumps(each.grouping.to_wire())] for each in spec.inputs),
        "stateful": isinstance(component, Stateful),
    }
    if not isinstance(component, ShellComponent):
        found["class"] = type(innermost(component)).__name__
    if found["stateful"]:
        found["tasks"] = spec.tasks
    return found


def _differences(then: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    if then["topology"] != now["topology"]:
        yield f"it was {then['topology']!r}, and this is {now['topology']!r}"
    for what, name in (("component", "components"), ("source", "sources")):
        for id in sorted(then[name].keys() | now[name].keys()):
            if id not in now[name]:
                yield f"{what} {id!r} is not there any more"
            elif id not in then[name]:
                yield f"{what} {id!r} was not there"
    for id, columns in now["sources"].items():
        if columns != then["sources"][id]:
            yield f"the source of {id!r} had the columns {', '.join(then['sources'][id])}, and has {', '.join(columns)}"
    for id, spec in now["components"].items():
        before = then["components"][id]
        for key in sorted(before.keys() | spec.keys()):
            if before.get(key) != spec.get(key):
                yield f"{key} of {spec['kind']} {id!r} was {before.get(key)!r}, and is {spec.get(key)!r}"


class QueryLog:
    """The id of a query, and the rows of its batches, as its checkpoint has them."""

    def __init__(self, spark: SparkSession, checkpoint: str) -> None:
        self._checkpoint = checkpoint
        self._place = _Place(spark, checkpoint)

    @cached_property
    def query(self) -> str:
        """The query's id, which Spark writes before the first batch, and keeps from one start to the next."""
        found = loads(self._place.read("metadata") or "{}").get("id")
        if found is None:
            raise TopologyError(
                f"the query's id is not in {self._checkpoint}/metadata, where Spark writes it: give the query the checkpoint whole, or begin "
                "a new one, which reads its sources from their beginning, and with it an empty place of the state"
            )
        return str(found)

    def rows(self, batch: int) -> str | None:
        """Return what identifies the rows of a batch that Spark has planned, or None if the checkpoint does not have it.

        It is a hash of the offset of each source. A source of files has only the number of a list there, so that the files of all
        lists since the batch before stand for it: there are several when the query was stopped before it planned a batch of one.
        """
        offsets = self._offsets(batch)
        if offsets is None:
            return None
        before = self._offsets(batch - 1) or ["-"] * len(offsets)
        found = blake2b(digest_size=16)
        for number, (then, now) in enumerate(zip(before, offsets, strict=True)):
            last = _listed(now)
            files = self._files(number, min(_listed(then) + 1, last), last)
            found.update(f"{now}\n{files}\n".encode())
        return found.hexdigest()

    def _offsets(self, batch: int) -> list[str] | None:
        """Return the offset of each source at a batch's end, or None if the checkpoint does not have the batch."""
        text = self._place.read(f"offsets/{batch}")
        if text is None:
            return None
        return text.splitlines()[2:]  # behind the format's version, and when and how the batch was planned

    def _files(self, source: int, first: int, last: int) -> str:
        """Return the files of a source's lists between two numbers."""
        files: list[str] = []
        for number in range(last, max(first, 0) - 1, -1):
            text = self._place.read(f"sources/{source}/{number}")
            merged = None if text is not None else self._place.read(f"sources/{source}/{number}.compact")
            for line in (text or merged or "").split("\n"):
                listed = _LISTED.search(line)
                if listed is not None and first <= int(listed[1]) <= number:
                    files.append(line)
            if merged is not None:  # which has all lists before, too
                break
        return "\n".join(sorted(files))


_LISTED = re.compile(r'"batchId":(\d+)}$')  # at the end of a file's line, the number of its list


def _listed(offset: str) -> int:
    """Return the number of a source's last list of files, or -1 if it has none."""
    return int(loads(offset)["logOffset"]) if offset.startswith('{"logOffset":') else -1


class _Place:
    """A folder on any file system that Spark can write to, through Hadoop's classes."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._java: Any = cast("Any", spark._jvm)
        self._path: Any = self._java.org.apache.hadoop.fs.Path(folder)
        session: Any = spark._jsparkSession
        try:
            self._system = self._path.getFileSystem(session.sessionState().newHadoopConf())
        except Py4JJavaError as error:
            raise TopologyError(
                f"the checkpoint {folder} is nowhere that Spark can write to: {error.java_exception.getMessage()}"
            ) from error

    @property
    def local(self) -> str | None:
        """The path on this machine, or None when it is elsewhere."""
        if self._system.getUri().getScheme() != "file":
            return None
        return str(self._system.makeQualified(self._path).toUri().getPath())

    def read(self, name: str) -> str | None:
        """Return a file's text, or None when there is no such file."""
        path = self._java.org.apache.hadoop.fs.Path(self._path, name)
        if not self._system.exists(path):
            return None
        stream = self._system.open(path)
        try:
            return bytes(stream.readAllBytes()).decode("utf-8")
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """Write a file: all of it, or nothing."""
        path = self._java.org.apache.hadoop.fs.Path(self._path, name)
        part = self._java.org.apache.hadoop.fs.Path(self._path, f".{name}.part")
        stream = self._system.create(part, True)
        try:
            stream.write(text.encode("utf-8"))
        finally:
            stream.close()
        self._system.delete(path, False)
        if not self._system.rename(part, path):
            raise TopologyError(f"{path} can't be written")

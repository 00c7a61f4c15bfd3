"""The record of a deployment in the cluster's blob store, for the next one to complete it if it is broken off.

The next one may be made on another machine. There are two blobs: a few facts as JSON, and a zip with all that the former
topology was submitted with. Both are there from before the first change until the deployment has ended, well or not.
"""

from __future__ import annotations

import io
import json
import os
import socket
import time
import zipfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multilang.shipping.answers import check_struct
from multilang.shipping.blobs import delete_blob, read_blob, store_blob
from multilang.shipping.errors import ShippingError, refused
from multilang.shipping.former import Former
from multilang.shipping.thrift_types import types

if TYPE_CHECKING:
    from multilang.shipping.nimbus import Nimbus

_UPLOAD = 0.5  # seconds that a few facts take, and more
_KINDS: dict[str, Any] = {  # of the facts
    "former": str,
    "active": bool,
    "new": (str, type(None)),
    "host": str,
    "pid": int,
    "began": (int, float),
    "until": (int, float),
}
_OWN = ("name", "id", "conf", "active", "drain")


@dataclass(frozen=True)
class DeploymentRecord:
    """The facts of a deployment that is under way, or was broken off.

    Attributes:
        former: The id of the topology that it replaces.
        active: Whether that one's spouts emitted.
        new: The id of the new one; None: it was not submitted yet.
        host: The machine on which it was begun.
        pid: Its process there.
        began: The time, in seconds since 1970.
        until: The time at which it must have ended.
        processes: The kernel and the namespace of processes in which its pid is one; empty: it was not noted.
        mark: A text that no other deployment has; empty: it was not noted.
    """

    former: str
    active: bool
    new: str | None
    host: str
    pid: int
    began: float
    until: float
    processes: str = ""
    mark: str = ""

    @property
    def is_under_way(self) -> bool:
        """True if the process that began it may still run."""
        if time.time() > self.until:
            return False
        if self.host != socket.gethostname() or (self.processes and self.processes != _processes()):
            return True  # its pid has no meaning here, where containers all begin to count at 1
        if self.pid == os.getpid():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass  # another user's
        return True


def keys(name: str) -> tuple[str, str]:
    """Return the keys of the facts and of the former topology. ``name``: the topology's name."""
    return f"multilang-deploy-{name}.json", f"multilang-deploy-{name}.zip"


def begin(nimbus: Nimbus, name: str, former: Former, mark: str, longest: float) -> DeploymentRecord:
    """Store a former topology, and the record of a deployment that begins now.

    The record is stored first: of two deployments that begin at once, the store lets one alone make them.

    Args:
        nimbus: The connection.
        name: The topology's name.
        former: The topology that is replaced.
        mark: A text that no other deployment has.
        longest: Seconds that the deployment may take.

    Raises:
        ShippingError: Another deployment has begun.
    """
    record = DeploymentRecord(former.id, former.active, None, **_begun_here(mark, longest))
    try:
        _store(nimbus, keys(name)[0], _facts(record), only_new=True)
    except ShippingError as error:
        if error.kind != "KeyAlreadyExistsException":
            raise
        if record_of(nimbus, name) is None:
            time.sleep(_UPLOAD)  # it is empty while another one writes it, and also where the writing was broken off
        refuse_if_under_way(name, record_of(nimbus, name))
        note(nimbus, name, record)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:  # the jar is compressed already
        archive.writestr("about.json", json.dumps({each: getattr(former, each) for each in _OWN}))
        archive.writestr("former.jar", former.jar)
        archive.writestr("structure.thrift", _serialized(former.structure))
    _store(nimbus, keys(name)[1], out.getvalue())
    return record


def take_over(nimbus: Nimbus, name: str, record: DeploymentRecord, mark: str, longest: float) -> DeploymentRecord:
    """Begin a deployment with the record of one that was broken off; return the new record.

    Args:
        nimbus: The connection.
        name: The topology's name.
        record: The record of the one that was broken off.
        mark: A text that no other deployment has.
        longest: Seconds that the deployment may take.
    """
    record = replace(record, **_begun_here(mark, longest))
    note(nimbus, name, record)
    return record


def refuse_if_under_way(name: str, record: DeploymentRecord | None) -> None:
    """Raise ShippingError if a deployment may still be under way.

    Args:
        name: The topology's name.
        record: The deployment's record.
    """
    if record is not None and record.is_under_way:
        raise refused(
            "AlreadyAliveException",
            f"a deployment of {name!r} that process {record.pid} on {record.host} began {ago(record.began)} is under way: wait until it has "
            f"ended. If that process has ended: multilang blob rm {keys(name)[0]}",
        )


def check_own(nimbus: Nimbus, name: str, record: DeploymentRecord) -> None:
    """Check that no other deployment has begun, for which this one counts as broken off if it was stopped for too long.

    Nimbus offers no step that compares and changes: what this one does at once after the check is not held back.

    Args:
        nimbus: The connection.
        name: The topology's name.
        record: This deployment's record.

    Raises:
        ShippingError: Another one has begun.
    """
    found = record_of(nimbus, name)
    if found is not None and found.mark == record.mark:
        return
    if found is None:
        meanwhile = f"another one began and ended, or the blob {keys(name)[0]} was removed"
    else:
        meanwhile = f"process {found.pid} on {found.host} began another one"
    raise refused(
        "AlreadyAliveException",
        f"this deployment of {name!r} began {ago(record.began)}. Meanwhile {meanwhile}: this one changes nothing more. See what runs "
        "now with multilang list",
    )


def ago(when: float) -> str:
    """Return in words how long ago a time was, in seconds since 1970."""
    secs = max(0, round(time.time() - when))
    return f"{secs} s ago" if secs < 120 else f"{secs // 60} min ago"


def note(nimbus: Nimbus, name: str, record: DeploymentRecord) -> None:
    """Store the record of a deployment. ``name``: the topology's name."""
    _store(nimbus, keys(name)[0], _facts(record))


def record_of(nimbus: Nimbus, name: str) -> DeploymentRecord | None:
    """Return the record of a deployment that has not ended; None if there is none.

    Args:
        nimbus: The connection.
        name: The topology's name.

    Raises:
        ShippingError: The record can't be understood.
    """
    data = _read(nimbus, keys(name)[0])
    if not data:  # it is empty where the upload was broken off, before anything was changed
        return None
    try:
        found = json.loads(data)
        if not all(isinstance(found[each], kinds) for each, kinds in _KINDS.items()) or not 0 < found["pid"] < 1 << 31:
            raise TypeError
        return DeploymentRecord(**found)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _damaged(keys(name)[0]) from None


def stored_former(nimbus: Nimbus, name: str) -> Former:
    """Return the former topology of a deployment that was broken off. Raises ShippingError if it can't be understood."""
    key = keys(name)[1]
    data = _read(nimbus, key)
    if data is None:
        raise _damaged(key)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if any(each.compress_type != zipfile.ZIP_STORED for each in archive.infolist()):
                raise ValueError("packed, and so of any size")
            about = json.loads(archive.read("about.json"))
            return Former(
                **{each: about[each] for each in _OWN},
                jar=archive.read("former.jar"),
                structure=_deserialized(archive.read("structure.thrift")),
            )
    except (ValueError, TypeError, KeyError, EOFError, RecursionError, ShippingError, zipfile.BadZipFile):
        raise _damaged(key) from None


def forget(nimbus: Nimbus, name: str) -> None:
    """Remove the record, if there is one. ``name``: the topology's name."""
    for key in keys(name):  # the record first: without it, the rest is not read
        try:
            delete_blob(nimbus, key)
        except ShippingError as error:
            if error.kind != "KeyNotFoundException":
                raise


def _begun_here(mark: str, longest: float) -> dict[str, Any]:
    now = time.time()
    here = {"host": socket.gethostname(), "pid": os.getpid(), "processes": _processes(), "mark": mark}
    return {**here, "began": now, "until": now + longest}


def _processes() -> str:
    """Return the kernel and the namespace of pids here, since containers may share a host's name."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:  # no Linux, or a closed /proc
        return ""


def _facts(record: DeploymentRecord) -> bytes:
    return json.dumps(asdict(record)).encode()


def _store(nimbus: Nimbus, key: str, data: bytes, only_new: bool = False) -> None:
    store_blob(nimbus, key, io.BytesIO(data), only_new=only_new)


def _read(nimbus: Nimbus, key: str) -> bytes | None:
    try:
        return b"".join(read_blob(nimbus, key))
    except ShippingError as error:
        if error.kind != "KeyNotFoundException":
            raise
        return None


def _damaged(key: str) -> ShippingError:
    return refused(
        "KeyNotFoundException",
        f"a deployment was broken off, and the blob {key!r} in which it stored the former topology is missing or not what "
        f"multilang writes: look at what runs (multilang list), and forget that deployment (multilang blob rm {key.rpartition('.')[0]}.json)",
    )


def _serialized(structure: Any) -> bytes:
    from thriftpy2.protocol import TBinaryProtocolFactory
    from thriftpy2.utils import serialize

    data: bytes = serialize(structure, TBinaryProtocolFactory())
    return data


def _deserialized(data: bytes) -> Any:
    from thriftpy2.protocol import TBinaryProtocolFactory
    from thriftpy2.utils import deserialize

    check_struct(data)
    return deserialize(types().StormTopology(), data, TBinaryProtocolFactory())

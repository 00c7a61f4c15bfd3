"""The facts that a deployment keeps in the cluster's blob store, so that the next one understands it if it is broken off.

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
class Kept:
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
        mark: What tells it from every other deployment; empty: it was not noted.
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
        """True if the process that began it may still be at it."""
        if time.time() > self.until:
            return False
        if self.host != socket.gethostname() or (self.processes and self.processes != _processes()):
            return True  # nobody can look; its pid says nothing here, where containers all begin to count at 1
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


def keep(nimbus: Nimbus, name: str, former: Former, mark: str, longest: float) -> Kept:
    """Keep a former topology, and the facts of a deployment that begins now.

    The facts come first: of two deployments that begin at once, the store lets one alone make them.

    Args:
        nimbus: The connection.
        name: The topology's name.
        former: The topology that is replaced.
        mark: What tells the deployment from every other one.
        longest: Seconds that the deployment may take.

    Raises:
        ShippingError: Another deployment has begun.
    """
    kept = Kept(former.id, former.active, None, **_begun_here(mark, longest))
    try:
        _store(nimbus, keys(name)[0], _facts(kept), only_new=True)
    except ShippingError as error:
        if error.kind != "KeyAlreadyExistsException":
            raise
        if kept_of(nimbus, name) is None:
            time.sleep(_UPLOAD)  # it is empty while another one writes it, and also where the writing was broken off
        refuse_if_under_way(name, kept_of(nimbus, name))
        note(nimbus, name, kept)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:  # the jar is compressed already
        archive.writestr("about.json", json.dumps({each: getattr(former, each) for each in _OWN}))
        archive.writestr("former.jar", former.jar)
        archive.writestr("structure.thrift", _serialized(former.structure))
    _store(nimbus, keys(name)[1], out.getvalue())
    return kept


def take_over(nimbus: Nimbus, name: str, kept: Kept, mark: str, longest: float) -> Kept:
    """Note that a deployment begins now with what one that was broken off has kept; return its facts.

    Args:
        nimbus: The connection.
        name: The topology's name.
        kept: The facts of the one that was broken off.
        mark: What tells the deployment from every other one.
        longest: Seconds that the deployment may take.
    """
    kept = replace(kept, **_begun_here(mark, longest))
    note(nimbus, name, kept)
    return kept


def refuse_if_under_way(name: str, kept: Kept | None) -> None:
    """Raise ShippingError if a deployment may still be at it.

    Args:
        name: The topology's name.
        kept: The deployment's facts.
    """
    if kept is not None and kept.is_under_way:
        raise refused(
            "AlreadyAliveException",
            f"a deployment of {name!r} that process {kept.pid} on {kept.host} began {ago(kept.began)} is under way: wait until it has "
            f"ended. If that process is gone: multilang blob rm {keys(name)[0]}",
        )


def check_own(nimbus: Nimbus, name: str, kept: Kept) -> None:
    """Check that no other deployment has begun, for which this one counts as broken off if it was stopped for too long.

    Nimbus offers no step that compares and changes: what this one does at once after the check is not held back.

    Args:
        nimbus: The connection.
        name: The topology's name.
        kept: This deployment's facts.

    Raises:
        ShippingError: Another one has begun.
    """
    found = kept_of(nimbus, name)
    if found is not None and found.mark == kept.mark:
        return
    if found is None:
        meanwhile = f"another one began and ended, or somebody removed the blob {keys(name)[0]}"
    else:
        meanwhile = f"process {found.pid} on {found.host} began another one"
    raise refused(
        "AlreadyAliveException",
        f"this deployment of {name!r} began {ago(kept.began)}. Meanwhile {meanwhile}: this one changes nothing more. See what runs "
        "now with multilang list",
    )


def ago(when: float) -> str:
    """Return in words how long ago a time was, in seconds since 1970."""
    secs = max(0, round(time.time() - when))
    return f"{secs} s ago" if secs < 120 else f"{secs // 60} min ago"


def note(nimbus: Nimbus, name: str, kept: Kept) -> None:
    """Write down the facts of a deployment. ``name``: the topology's name."""
    _store(nimbus, keys(name)[0], _facts(kept))


def kept_of(nimbus: Nimbus, name: str) -> Kept | None:
    """Return the facts of a deployment that has not ended; None if there is none.

    Args:
        nimbus: The connection.
        name: The topology's name.

    Raises:
        ShippingError: What is kept can't be understood.
    """
    data = _read(nimbus, keys(name)[0])
    if not data:  # it is empty where the upload was broken off, before anything was changed
        return None
    try:
        found = json.loads(data)
        if not all(isinstance(found[each], kinds) for each, kinds in _KINDS.items()) or not 0 < found["pid"] < 1 << 31:
            raise TypeError
        return Kept(**found)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _damaged(keys(name)[0]) from None


def kept_former(nimbus: Nimbus, name: str) -> Former:
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
    """Remove what is kept; it is no fault if nothing is. ``name``: the topology's name."""
    for key in keys(name):  # the facts first: without them, nobody looks at the rest
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
    """Return which kernel's processes, in which namespace, a pid is one of here; containers may share a host's name."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:  # no Linux, or a closed /proc
        return ""


def _facts(kept: Kept) -> bytes:
    return json.dumps(asdict(kept)).encode()


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
        f"a deployment was broken off, and the blob {key!r} in which it kept the former topology is missing or not what "
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

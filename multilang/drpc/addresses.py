"""The addresses of DRPC servers: a host and a port, or a folder of Unix sockets that one user alone may enter.

``unix:/run/user/1000/drpc`` stands where a host does. A port is then the name of a socket in that folder.
"""

from __future__ import annotations

import os
import socket

from multilang.drpc.errors import DRPCConnectionError
from multilang.helpers.private import check_owners, is_own_folder

UNIX = "unix:"
_LONGEST_PATH = 103  # bytes; macOS takes no more, Linux 107


def folder_of(host: str) -> str | None:
    """Return the folder of a host that is one of Unix sockets; None for another host."""
    return host[len(UNIX) :] if host.startswith(UNIX) else None


def path_of(host: str, port: int) -> str | None:
    """Return the path of a Unix socket; None for another host."""
    folder = folder_of(host)
    return None if folder is None else _path(folder, port)


def checked_path_of(host: str, port: int) -> str | None:
    """Return the path of a Unix socket to connect to; None for another host.

    Raises:
        OSError: There is no such folder.
        DRPCConnectionError: The folder is not this user's alone, so that somebody else may listen there in the server's place.
    """
    folder = folder_of(host)
    if folder is None:
        return None
    path = _path(folder, port)
    _check_folder(folder)
    return path


def shown(host: str, port: int) -> str:
    """Return an address in the words of a message."""
    path = path_of(host, port)
    return f"{host}:{port}" if path is None else f"{UNIX}{path}"


def connect(host: str, port: int, timeout: float) -> socket.socket:
    """Return a connection to a server.

    Raises:
        OSError: There is none.
        DRPCConnectionError: Its folder is not this user's alone, so that somebody else may listen in its place.
    """
    path = checked_path_of(host, port)
    if path is None:
        wire = socket.create_connection((host, port), timeout)
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return wire
    wire = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        wire.settimeout(timeout)
        wire.connect(path)
    except BaseException:
        wire.close()
        raise
    return wire


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; its folder, for a Unix socket, is this user's alone.

    Raises:
        OSError: Nothing can listen there.
        DRPCConnectionError: Others may enter the folder, so that it would protect nothing.
    """
    from multilang.listening.accepting import BACKLOG, bind  # which clients in a task's process need not load

    folder = folder_of(host)
    if folder is None:
        return bind(host, port)
    _own_folder(folder)
    path = _path(folder, port)
    _drop_stale(path)
    wire = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        wire.bind(path)
        wire.listen(BACKLOG)
    except BaseException:
        wire.close()
        raise
    return wire


def close_listening(wire: socket.socket) -> None:
    """Close a socket that ``listen`` returned, and remove its file."""
    path = wire.getsockname() if wire.family == socket.AF_UNIX else None
    wire.close()
    if path:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass


def _path(folder: str, port: int) -> str:
    path = os.path.join(folder, str(port))
    if not os.path.isabs(folder) or len(os.fsencode(path)) > _LONGEST_PATH:
        raise DRPCConnectionError(
            f"{UNIX}{folder} is no folder for sockets: write an absolute path of at most {_LONGEST_PATH - 6} bytes"
        )
    return path


def _own_folder(folder: str) -> None:
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    _check_folder(folder)


def _check_folder(folder: str) -> None:
    try:
        check_owners(folder, must_exist=True)
    except PermissionError as error:
        raise DRPCConnectionError(
            f"{error}, so others could answer for the server: name a folder of your own"
        ) from None
    if not is_own_folder(folder):
        raise DRPCConnectionError(
            f"{folder} is no folder of this user's alone, so others could answer for the server: chmod 700 it, or name another"
        )


def _drop_stale(path: str) -> None:
    """Remove the socket of a server that was killed. A running one keeps it, and ``bind`` then fails."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        except FileNotFoundError:
            pass
